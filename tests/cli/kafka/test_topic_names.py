"""A shell completes names of topics and groups, and other values of options."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from cloudevents_kafka import Record
from cloudevents_kafka.cli.app import app
from cloudevents_kafka.cli.kafka.cluster import ClusterView
from tests.cli.command_line import send

SHELL = BashComplete(app, {}, "cloudevents-kafka", "_COMPLETE")


def completions(*words: str) -> list[str]:
    return [item.value for item in SHELL.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    "words",
    [
        *(
            ("consume", "-t"),
            ("consume", "-t", "x", "-t"),
            ("stats", "-t"),
            ("produce", "--topic"),
            ("topics",),
        ),
        *(("pipeline", "-t"), ("groups", "reset", "-t"), ("replay", "--to"), ("report", "-t")),
        *(("protocol", "fetch"), ("protocol", "produce")),
    ],
)
def test_topics_are_completed(mock_cluster, topic, words, monkeypatch):
    """Topics that begin with what was typed are completed, by the settings on the line or around it."""
    send(mock_cluster, topic, Record(value=b"x"))
    monkeypatch.setenv("CE_KAFKA_BOOTSTRAP_SERVERS", mock_cluster)
    assert topic in completions(*words, "cli-")
    assert completions(*words, f"{topic}-none") == []
    monkeypatch.delenv("CE_KAFKA_BOOTSTRAP_SERVERS")
    command, *option = words
    if command not in ("groups", "protocol"):
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


def test_groups_are_completed(mock_cluster, topic, monkeypatch):
    """The consumer groups of the brokers are completed wherever one is named."""
    monkeypatch.setenv("CE_KAFKA_BOOTSTRAP_SERVERS", mock_cluster)
    monkeypatch.setattr(ClusterView, "group_names", lambda _: ["billing", "bills", "shop"])
    for command in ("consume", "stats", "replay", "report", "groups", "pipeline"):
        assert completions(command, "--group", "bil") == ["billing", "bills"]
    assert completions("groups", "reset", "--group", "s") == ["shop"]


def test_profiles_are_completed(monkeypatch, tmp_path):
    """The profiles of the file are completed; none if it is missing or wrong."""
    file = tmp_path / "profiles.toml"
    monkeypatch.setenv("CE_KAFKA_PROFILES", str(file))
    assert completions("consume", "--profile", "") == []
    file.write_text('[staging]\n"bootstrap.servers" = "h:1"\n[stage2]\n[prod]\n')
    for command in (("consume",), ("doctor",), ("protocol", "fetch"), ("groups", "reset")):
        assert completions(*command, "--profile", "st") == ["staging", "stage2"]
    file.write_text("[")
    assert completions("consume", "--profile", "") == []


def test_messages_and_commands_are_completed():
    """`grammar` completes the names of messages in any case, and `doctor` commands, also with an option."""
    assert completions("protocol", "grammar", "metadatar") == ["MetadataRequest", "MetadataResponse"]
    assert "pipeline --to delta" in completions("doctor", "pipeline")
    assert completions("doctor", "consume", "stat") == ["stats"]


def test_values_that_are_known_are_completed():
    """Options complete values that are known without a broker, such as attributes, and folders."""
    for words, values in (
        (("produce", "--key-from", "part"), ["partitionkey"]),
        (("protocol", "decode", "--api", "meta"), ["Metadata"]),
        (("table", "replay", "--verdict", "broken"), ["broken-event", "broken-data"]),
        (("table", "replay", "--clause", "k-1"), ["K-10", "K-11", "K-15"]),
        (("consume", "--from", "e"), ["earliest"]),
        (("stats", "--until", ""), ["earliest", "latest", "stored"]),
        (("groups", "reset", "--to", "l"), ["latest"]),
    ):
        assert completions(*words) == values, words
    for command in (("pipeline",), ("report",), ("table", "vacuum"), ("table", "replay")):
        [item] = SHELL.get_completions([*command, "--out"], "la")
        assert (item.value, item.type) == ("la", "dir"), command
