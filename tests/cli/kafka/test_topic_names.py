"""A shell completes the names of topics."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from cloudevents_kafka import Record
from cloudevents_kafka.cli.app import app
from tests.cli.command_line import send


def completions(*words: str) -> list[str]:
    shell = BashComplete(app, {}, "cloudevents-kafka", "_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    "words",
    [("consume", "-t"), ("produce", "--topic"), ("topics",), ("pipeline", "-t"), ("groups", "reset", "-t")],
)
def test_topics_are_completed(mock_cluster, topic, words, monkeypatch):
    """Topics that begin with what was typed are completed, by the settings on the line or around it."""
    send(mock_cluster, topic, Record(value=b"x"))
    monkeypatch.setenv("CE_KAFKA_BOOTSTRAP_SERVERS", mock_cluster)
    assert topic in completions(*words, "cli-")
    assert completions(*words, f"{topic}-none") == []
    monkeypatch.delenv("CE_KAFKA_BOOTSTRAP_SERVERS")
    command, *option = words
    if command != "groups":
        assert topic in completions(command, "-b", mock_cluster, *option, topic)


def test_nothing_is_printed_without_a_broker(capfd):
    """Without a broker that answers nothing is completed, and nothing is printed."""
    for options in ((), ("-b", "127.0.0.1:1"), ("-b", "http://x"), ("--profile", "none")):
        assert completions("consume", *options, "-t", "x") == []
    assert capfd.readouterr() == ("", "")


def test_commands_and_options_are_completed():
    """Commands are completed from the table, and options of a command."""
    assert completions("top") == ["topics"]
    assert "--lenient" in completions("consume", "--l")
