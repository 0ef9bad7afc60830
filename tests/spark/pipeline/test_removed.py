"""What was removed is answered by the sentence that the table of the changelog has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.spark.pipeline import EventPipeline, NotOnConnect, PipelineOptions
from cloudevents_kafka.spark.pipeline._errors import IN_PROCESS
from cloudevents_kafka.spark.pipeline.options.removed import OPTIONS, TOPICS
from tests.support.cases import each

CHANGELOG = (Path(__file__).parents[3] / "CHANGELOG.md").read_text("utf-8")
GOOD: dict[str, Any] = {"bootstrap_servers": "b:1", "topics": ("t",), "out": "o"}


@each("sentence", [IN_PROCESS, TOPICS, *OPTIONS.values()])
def test_changelog(sentence: str) -> None:
    """Each sentence is a row of the table, and names pages that exist."""
    rows = re.findall(r"^\|.*\| (.+) \|$", CHANGELOG, re.MULTILINE)
    assert rows.count(sentence) == 1
    pages = re.findall(r"docs/\S+\.md", sentence)
    assert pages
    assert all((Path(__file__).parents[3] / page).exists() for page in pages)


@each(
    ("options", "words", "sentence"),
    [
        ({"to": "kafka", "table": "x"}, "to must be parquet, delta or iceberg, got 'kafka'", TOPICS),
        ({"mode": "structured"}, "mode='structured' was removed", OPTIONS["mode"]),
        ({"date_of": "time"}, "date_of='time' was removed", OPTIONS["date_of"]),
        ({"master": "sc://h"}, "master must be .* got 'sc://h', which is Spark Connect", IN_PROCESS),
    ],
)
def test_options(options: dict[str, Any], words: str, sentence: str) -> None:
    """An option of an earlier version is refused with what to do."""
    with pytest.raises(ValueError, match=rf"{words}\. {re.escape(sentence)}"):
        PipelineOptions(**GOOD, **options)


@pytest.mark.parametrize(
    ("options", "words", "sentence"),
    [
        (["--to", "kafka"], "--to must be parquet, delta or iceberg, got kafka", TOPICS),
        (["--mode", "binary"], "--mode was removed", OPTIONS["mode"]),
        (["--date-of", "time"], "--date-of was removed", OPTIONS["date_of"]),
        (["--master", "sc://h"], "which is Spark Connect", IN_PROCESS),
    ],
)
def test_command(monkeypatch: pytest.MonkeyPatch, options: list[str], words: str, sentence: str) -> None:
    """So it is on the command line, with exit code 2; its help does not have it."""
    monkeypatch.setattr("cloudevents_kafka.cli.commands.pipeline.require", lambda *_: None)
    done = CliRunner().invoke(app, ["pipeline", "-b", "b:1", "-t", "t", "-o", "o", *options])
    assert done.exit_code == 2
    assert f"{words}. {sentence}" in done.output
    shown = CliRunner().invoke(app, ["pipeline", "--help"]).output
    assert "--mode" not in shown
    assert "--date-of" not in shown


class ConnectSession:
    """A session of Spark Connect without a server."""

    __module__ = "pyspark.sql.connect.session"


def test_session_of_connect() -> None:
    """A pipeline and a function for each batch need a session in this process."""
    session: Any = ConnectSession()
    for function in (None, print):
        with pytest.raises(NotOnConnect, match=f"got a Spark Connect session. {IN_PROCESS}"):
            EventPipeline(PipelineOptions(**GOOD), spark=session, each_batch=function).start()
