"""Run the demo: start Kafka, send and read back the records, run the pipeline, and compare the results."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.cli.demo import traffic
from cloudevents_kafka.jvm import Progress
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.text_table import format_table
from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineOptions, Summary

TOPIC: Final = "shop"
PARTITIONS: Final = 3
_MAX_DIFFERENCES: Final = 3

# Spark runs for seconds: compiling its code for a long run would take more time than it saves.
_SHORT_RUN: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
}


class Check(msgspec.Struct, frozen=True):
    """One check of the demo with its result; ``difference`` says why the check failed."""

    description: str
    passed: bool
    difference: str = ""

    def __str__(self) -> str:
        if self.passed:
            return f"ok      {self.description}"
        return f"FAILED  {self.description}: {self.difference}"


class Outcome(msgspec.Struct):
    """The counts, the summary of the pipeline, and the checks of one run of the demo."""

    sent: traffic.TrafficCounts
    back: traffic.TrafficCounts
    summary: Summary
    checks: list[Check]
    invalid_lines: list[traffic.InvalidLine]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)


def run_demo(out: Path, *, seed: int, count: int, events: Path | None = None) -> Outcome:
    """Run the demo, stop all processes that it has started, and return the outcome of the checks.

    ``out`` is the folder for the tables. ``events`` is a file with events; without this file, the events of
    the shop are sent. Progress goes to stderr.
    """
    from cloudevents_kafka.testing import LocalBroker

    started = time.monotonic()
    invalid_lines: list[traffic.InvalidLine] = []
    with Progress(sys.stderr) as progress:
        progress.log("starting a local Kafka")
        with LocalBroker() as broker:
            broker.create_topic(TOPIC, partitions=PARTITIONS)
            servers = broker.bootstrap_servers
            progress.log(f"Kafka listens on {servers}; sending events to topic {TOPIC!r}")
            items = traffic.shop_traffic(seed, count) if events is None else _read_file(events, invalid_lines)
            sent = traffic.send_traffic(servers, TOPIC, items, _counter(progress, "sent"))
            progress.log(f"{pluralize(sent.total, 'record')} sent; reading back")
            back = traffic.read_back(servers, TOPIC, PARTITIONS, sent.total, _counter(progress, "read back"))
            progress.log(f"{pluralize(back.total, 'record')} read back; starting Spark (takes some seconds)")
            options = _pipeline_options(servers, out, sent.total)
            summary = EventPipeline(options, report=lambda batch: progress.log(f"  {batch}")).run()
        progress.log("comparing")
        checks = run_checks(sent, back, summary, out)
    return Outcome(sent, back, summary, checks, invalid_lines, time.monotonic() - started)


def _pipeline_options(servers: str, out: Path, records: int) -> PipelineOptions:
    return PipelineOptions(
        bootstrap_servers=servers,
        topics=(TOPIC,),
        out=str(out),
        once=True,
        max_records=records // 3 + 50,  # three batches, so that more than one is shown
        conf=_SHORT_RUN,
    )


def _counter(progress: Progress, label: str) -> Callable[[int], None]:
    def show(number: int) -> None:
        if number % 500 == 0:
            progress.update(f"{pluralize(number, 'record')} {label}")

    return show


def _read_file(path: Path, invalid_lines: list[traffic.InvalidLine]) -> Iterator[traffic.Item]:
    """Yield the events in a file; print each invalid line, and append it to ``invalid_lines``."""
    with path.open("rb") as lines:
        for item in traffic.file_traffic(str(path), lines):
            if isinstance(item, traffic.InvalidLine):
                invalid_lines.append(item)
                sys.stderr.write(f"{item}\n")
            else:
                yield item


# --- comparing ---


def run_checks(
    sent: traffic.TrafficCounts, back: traffic.TrafficCounts, summary: Summary, folder: Path
) -> list[Check]:
    """Return checks that compare the sent records with three other results of the demo.

    These three results are the records that were read back, the counts of the pipeline, and the rows in the
    tables.
    """
    counts = summary.counts
    sent_by_mode = Counter((type_, encoding.split()[0]) for type_, encoding in sent.events.elements())
    in_table = {(type_, mode): n for type_, modes in counts.by_type.items() for mode, n in modes.items()}
    quarantined = {verdict: sum(reasons.values()) for verdict, reasons in counts.by_reason.items()}
    rows = read_rows(folder / "events")
    sums = f"{pluralize(counts.events, 'event')} + {counts.quarantined:,} quarantined"
    in_files = f"{pluralize(len(rows), 'row')} in the files, with offset, id and data as read back"
    total = counts.events + counts.quarantined
    return [
        _compare(f"{pluralize(sent.total, 'record')} sent = {sums}", sent.total, total),
        _compare("events read back: as many of each type and encoding as sent", sent.events, back.events),
        _compare("events in the table: as many of each type and mode as sent", sent_by_mode, in_table),
        _compare("other records read back: as many of each verdict as sent", sent.verdicts, back.verdicts),
        _compare("other records in quarantine: as many of each verdict as sent", sent.verdicts, quarantined),
        _compare(in_files, back.payloads, rows),
    ]


def read_rows(folder: Path) -> dict[tuple[int, int], tuple[str, bytes | None]]:
    """Return the id and the data of each row of a table, as a dictionary by partition and offset.

    If an offset has a second row, this row is stored under a negative partition number, so that the check
    fails.
    """
    import pyarrow.parquet as pq

    rows: dict[tuple[int, int], tuple[str, bytes | None]] = {}
    for file in sorted(folder.rglob("*.parquet")):
        table = pq.ParquetFile(file).read(columns=["partition", "offset", "id", "data"])
        for partition, offset, id_, data in zip(
            *(column.to_pylist() for column in table.columns), strict=True
        ):
            if (partition, offset) in rows:
                rows[-partition - 1, offset] = (id_, data)
            rows[partition, offset] = (id_, data)
    return rows


def _compare(description: str, expected: object, actual: object) -> Check:
    if expected == actual:
        return Check(description, passed=True)
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return Check(description, passed=False, difference=_difference(expected, actual))
    return Check(description, passed=False, difference=f"expected {expected}, got {actual}")


def _difference(expected: Mapping[object, object], actual: Mapping[object, object]) -> str:
    """Return the first entries that differ, and the number of further entries that differ."""
    keys = [key for key in sorted({*expected, *actual}, key=str) if expected.get(key) != actual.get(key)]
    text = "; ".join(
        f"{key}: expected {_preview(expected.get(key))}, got {_preview(actual.get(key))}"
        for key in keys[:_MAX_DIFFERENCES]
    )
    more = len(keys) - _MAX_DIFFERENCES
    return f"{text} and {more} more" if more > 0 else text


def _preview(value: object) -> str:
    return "none" if value is None else repr(value)[:60]


# --- the report ---


def format_report(outcome: Outcome) -> str:
    """Return the report: tables of events and invalid records, the checks, the folders, the conclusion."""
    summary, others = outcome.summary, outcome.sent.others
    parts = [f"Events by type and encoding\n{_event_table(outcome)}"]
    if others:
        rows = [[name, verdict, f"{number:,}"] for (verdict, name), number in sorted(others.items())]
        table = format_table(
            ["record", "expected verdict", "sent"], [*rows, ["all", "", f"{others.total():,}"]]
        )
        parts.append(f"Invalid records, sent between the events\n{table}")
        table = summary.quarantine_text("verdict")
        parts.append(f"Records that the pipeline quarantined, and why\n{table}")
    parts.append("\n".join(["Checks", *(f"  {check}" for check in outcome.checks)]))
    folders = summary.folders_text()
    parts.append(f"Folders (the tables are Parquet files, readable by any tool)\n{folders}")
    return "\n\n".join([*parts, _conclusion(outcome)])


def _event_table(outcome: Outcome) -> str:
    sent, back, counts = outcome.sent.events, outcome.back.events, outcome.summary.counts
    encodings = list(map(str, traffic.ENCODINGS))

    def row(type_: str | None) -> list[int]:
        """Return a row of the report's table: the counts of events of one type, or of all types for None."""
        of_type = {key: n for key, n in sent.items() if type_ in {None, key[0]}}
        by_encoding = [sum(n for key, n in of_type.items() if key[1] == encoding) for encoding in encodings]
        read = sum(n for key, n in back.items() if type_ in {None, key[0]})
        stored = counts.events if type_ is None else sum(counts.by_type.get(type_, {}).values())
        return [*by_encoding, sum(of_type.values()), read, stored]

    types: list[str | None] = [*sorted({type_ for type_, _ in [*sent, *back]} | counts.by_type.keys()), None]
    header = ["event type", *encodings, "sent", "read back", "in the table"]
    return format_table(header, [[type_ or "all", *(f"{n:,}" for n in row(type_))] for type_ in types])


def _conclusion(outcome: Outcome) -> str:
    failed = sum(not check.passed for check in outcome.checks)
    if failed:
        return f"{failed} of {pluralize(len(outcome.checks), 'check')} failed, see above."
    sent = outcome.sent
    records = pluralize(sent.total, "record was", "records were")
    batches = pluralize(outcome.summary.batches, "batch", "batches")
    without_data = pluralize(sent.without_data, "event")
    return (
        f"All checks passed in {outcome.seconds:.0f} s: {records} sent, read back, and written to tables "
        f"in {batches} ({sent.with_key:,} with a key, {without_data} without data)."
    )
