"""The checks of the demo, without Kafka and Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cloudevents_kafka.demo._checks import read_rows, run_checks
from cloudevents_kafka.demo.clients import ReadCounts, TrafficCounts
from cloudevents_kafka.spark.pipeline import BatchCounts, PartitionCounts, Summary


def consistent_results(folder: Path) -> tuple[TrafficCounts, ReadCounts, Summary]:
    """Return results for which all checks pass, and write their table."""
    sent = TrafficCounts(events=Counter({("t", "binary"): 2}), others=Counter({("batch", "a batch"): 1}))
    back = ReadCounts(
        events=Counter({("t", "binary"): 2}),
        others=Counter({("batch", "why"): 1}),
        payloads={(0, 0): ("1", b"x"), (0, 1): ("2", None)},
    )
    counts = BatchCounts(
        read=3,
        events=2,
        quarantined=1,
        by_type={"t": {"binary": 2}},
        by_reason={"batch": {"why": 1}},
        offsets={"shop": {"0": PartitionCounts(0, 2, 3)}},
    )
    (folder / "events").mkdir()
    rows = {"partition": [0, 0], "offset": [0, 1], "id": ["1", "2"], "data": [b"x", None]}
    pq.write_table(pa.table(rows), folder / "events" / "a.parquet")
    summary = Summary(
        topics=("shop",),
        events_table="",
        quarantine_table="",
        checkpoint="",
        batches=1,
        recovered=None,
        complete=True,
        seconds=1.0,
        counts=counts,
        total=counts,
    )
    return sent, back, summary


def test_consistent_results_pass(tmp_path: Path) -> None:
    """All checks pass for consistent results."""
    checks = run_checks(*consistent_results(tmp_path), tmp_path)
    assert [str(check) for check in checks if not check.passed] == []
    assert {str(check)[:8] for check in checks} == {"ok      "}


def test_differences_are_found(tmp_path: Path) -> None:
    """A lost event, a changed byte and a duplicate row fail a check that shows the difference."""
    sent, back, summary = consistent_results(tmp_path)
    sent.events["t", "structured avro"] += 1
    back.payloads[0, 1] = ("2", b"")
    failed = [str(check) for check in run_checks(sent, back, summary, tmp_path) if not check.passed]
    assert len(failed) == 4
    assert failed[0].endswith(": expected 4, got 3")
    assert "('t', 'structured avro'): expected 1, got none" in failed[1]
    assert "(0, 1): expected ('2', b''), got ('2', None)" in failed[3]
    duplicate = tmp_path / "events" / "b.parquet"
    duplicate.write_bytes((tmp_path / "events" / "a.parquet").read_bytes())
    assert len(read_rows(tmp_path / "events")) == 4
