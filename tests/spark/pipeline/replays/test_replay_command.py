"""``table replay`` and ``pipeline --backfill``: options, messages and exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.cli.commands.table import replay as module
from cloudevents_kafka.spark import pipeline
from cloudevents_kafka.spark.pipeline import InUse, PipelineFailed, ReplayOptions, ReplaySummary
from cloudevents_kafka.spark.pipeline import replays as package

pytestmark = pytest.mark.spark
FIX = """
from cloudevents_kafka import Record


def add_id(record: Record) -> Record:
    return record


number = 3
"""
SUMMARY = ReplaySummary(
    number=2,
    finished=1,
    outcomes={"landed": 3, "refused": 1},
    counts={"broken-event": {"id: must be \x1b[31m": {"landed": 3, "refused": 1}}},
    outcomes_table="lake/quarantine_replays",
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """Return what a replay was called with; it returns `SUMMARY`."""
    calls: list[Any] = []

    def fake(options: ReplayOptions, *, mend: Any = None) -> ReplaySummary:
        calls.append((options, mend))
        return SUMMARY

    monkeypatch.setattr(pipeline, "replay_quarantine", fake)
    monkeypatch.setattr(package, "replayed_kind", lambda out: "parquet")
    monkeypatch.setattr(module, "require", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_fixes.py").write_text(FIX)
    (tmp_path / "order.json").write_text('{"type": "object", "properties": {"total": {"type": "integer"}}}')
    return calls


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["table", "replay", "-o", "lake", *arguments])


def test_options(asked: list[Any]) -> None:
    """Each option of the command is one of `ReplayOptions`, and the function is imported from here."""
    done = run(
        *("--verdict", "broken-event", "--verdict", "batch", "--clause", "T-12", "--reason", "time"),
        *("--type", "com.*", "--since", "2026-11-21T12:00:00Z", "--until", "2026-11-22T12:00:00Z"),
        *("--where", "offset > 3", "--lenient", "--apply", "--mend", "own_fixes:add_id", "--table", "a.b"),
        *("--master", "local[1]", "-X", "spark.driver.memory=2g"),
        *("--schema", "order.*=order.json", "--rescue", "--schema-registry", "http://r:1"),
        *("-X", "schema.registry.timeout=3"),
    )
    assert done.exit_code == 0, done.output
    options, mend = asked[0]
    assert options == ReplayOptions(
        out="lake",
        table="a.b",
        verdicts=("broken-event", "batch"),
        clauses=("T-12",),
        reasons=("time",),
        types=("com.*",),
        since="2026-11-21T12:00:00Z",
        until="2026-11-22T12:00:00Z",
        where="offset > 3",
        lenient=True,
        apply=True,
        master="local[1]",
        conf={"spark.driver.memory": "2g"},
        schemas={"order.*": {"type": "object", "properties": {"total": {"type": "integer"}}}},
        rescue=True,
        schema_registry={"url": "http://r:1", "timeout": "3"},
    )
    assert mend.__name__ == "add_id"


def test_what_it_prints(asked: list[Any]) -> None:
    """Text has the counts by verdict and reason, without control characters; --json has the same."""
    lines = run("--apply").output.splitlines()
    assert lines[0] == (
        "4 records chosen: 3 landed, 1 refused again (replay 2; outcomes in lake/quarantine_replays)"
    )
    assert lines[2] == "replay 1 of an earlier run was finished"
    assert lines[-2].split()[-2:] == ["landed", "3"]
    assert "\x1b" not in "".join(lines)
    assert json.loads(run("--json").output)["outcomes"] == {"landed": 3, "refused": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mend", "own_fixes"], "--mend must be MODULE:FUNCTION, such as fixes:mend, got 'own_fixes'"),
        (
            ["--mend", "own_fixes:none"],
            "--mend must name a function that can be imported, got 'own_fixes:none'",
        ),
        (["--mend", "no_such_module:f"], "No module named 'no_such_module'"),
        (["--mend", "own_fixes:number"], "which is not callable"),
        (["--since", "today"], "since must be a time such as"),
        (["--schema", "t"], "--schema must be TYPES=FILE"),
        (["--rescue"], "rescue must be False without schemas"),
        (["-X", "acks=1"], "-X must be a setting of Spark, spark.NAME=VALUE, got acks"),
    ],
)
def test_bad_usage(asked: list[Any], arguments: list[str], words: str) -> None:
    """Wrong options end with exit code 2 before anything starts."""
    done = run(*arguments)
    assert (done.exit_code, asked) == (2, [])
    assert words in done.output


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InUse("busy"), 2),
        (pipeline.CountMismatch("counts"), 1),
        (pipeline.FolderFailed("folder"), 1),
        (PipelineFailed("spark"), 3),
    ],
)
def test_exit_codes(asked: list[Any], monkeypatch: pytest.MonkeyPatch, error: Exception, code: int) -> None:
    """Each error has the exit code that it has for the pipeline."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(pipeline, "replay_quarantine", fail)
    done = run()
    assert (done.exit_code, str(error) in done.output) == (code, True)


def test_a_missing_folder() -> None:
    """It is named."""
    done = CliRunner().invoke(app, ["table", "replay", "-o", "/nowhere/at/all"])
    assert done.exit_code == 2
    assert "/nowhere/at/all is missing: it must be the folder of a pipeline" in done.output


def test_backfill_is_an_option_of_the_pipeline() -> None:
    """A wrong range is refused with the grammar."""
    arguments = ["pipeline", "-b", "b:1", "-t", "t", "-o", "o", "--backfill", "yesterday"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "backfill must be FROM..TO" in done.output
