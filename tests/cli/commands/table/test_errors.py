"""What is wrong with the tables or options of ``table`` is reported before Spark starts."""

from __future__ import annotations

import pytest

from cloudevents_kafka.spark.pipeline.session import _session
from cloudevents_kafka.spark.pipeline.stores import BACKFILL_FOLDER, REPLAYS_FOLDER, LocalStore

pytest.importorskip("pyspark")


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch):
    def fail(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(_session, "_launch", fail)


@pytest.mark.parametrize("command", ["optimize", "vacuum"])
def test_no_table(run, tmp_path, command):
    """A folder without a table of Delta or Iceberg, or that is missing, is bad usage; it is not created."""
    (tmp_path / "events").mkdir()
    done = run("table", command, "--out", tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{tmp_path} has no Delta or Iceberg table: it must be a Delta or Iceberg table" in done.stderr
    done = run("table", command, "-o", tmp_path / "none")
    assert done.exit_code == 2
    assert "none is missing: it must be a Delta or Iceberg table" in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("writer", ["", BACKFILL_FOLDER, REPLAYS_FOLDER])
@pytest.mark.parametrize("table", ["", "events"])
def test_in_use(run, tmp_path, table, writer):
    """Files younger than a day stay in a folder that a pipeline, a backfill or a replay writes to."""
    (tmp_path / "events" / "_delta_log").mkdir(parents=True)
    store = LocalStore(tmp_path / writer)
    store.lock()
    try:
        done = run("table", "vacuum", "--keep-hours", "23", "--out", tmp_path / table)
    finally:
        store.close()
    assert done.exit_code == 2
    assert "is being filled by another pipeline" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "a table is missing: pass --out DIR or --table CATALOG.SCHEMA.NAME"),
        (("--table", "a..b"), "the name of a table must be catalog.schema.name, got 'a..b'"),
        (
            ("--table", "a.b", "-X", "linger.ms=1"),
            "must be a setting of Spark, spark.NAME=VALUE, got linger.ms",
        ),
        (("--table", "a.b", "-X", "hunter2"), "a setting must be name=value"),
    ],
)
def test_options(run, options, message):
    """A missing table, a name that cannot be one, and settings of others are bad usage."""
    done = run("table", "vacuum", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize("hours", ["-1", "nan", "inf"])
def test_hours(run, hours):
    """Hours are a number from 0."""
    assert run("table", "vacuum", "--table", "a.b", "--keep-hours", hours).exit_code == 2
