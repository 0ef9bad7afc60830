"""The report of the demo, without Kafka and Spark."""

from __future__ import annotations

from pathlib import Path

from demo.results import consistent_results

from cloudevents_kafka.demo.report import format_report
from cloudevents_kafka.demo.run import Outcome, run_checks


def outcome(folder: Path, lost: int = 0) -> Outcome:
    sent, back, summary = consistent_results(folder)
    sent.events["t", "binary"] += lost
    return Outcome(sent, back, summary, run_checks(sent, back, summary, folder), [], 1.2)


def test_report_of_passed_checks(tmp_path: Path) -> None:
    """The report has the tables and the checks; the last line has numbers that agree with their nouns."""
    text = format_report(outcome(tmp_path))
    assert ["t", "2", "0", "0", "2", "2", "2"] in [line.split() for line in text.splitlines()]
    assert text.count("\n  ok      ") == 6
    assert text.splitlines()[-1] == (
        "All checks passed in 1 s: 3 records were sent, read back, and written to tables "
        "in 1 batch (0 with a key, 0 events without data)."
    )


def test_report_of_failed_checks(tmp_path: Path) -> None:
    """The last line has the number of failed checks."""
    text = format_report(outcome(tmp_path, lost=1))
    assert "\n  FAILED  4 records sent = 2 events + 1 quarantined: expected 4, got 3\n" in text
    assert text.splitlines()[-1] == "3 of 6 checks failed, see above."
