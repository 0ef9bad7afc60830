"""The checks of the demo, without Kafka and Spark."""

from __future__ import annotations

from pathlib import Path

from demo.results import consistent_results

from cloudevents_kafka.demo.run import read_rows, run_checks


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
