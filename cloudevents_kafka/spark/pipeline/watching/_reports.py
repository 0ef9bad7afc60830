"""The reports of a pipeline: the progress of each batch, and the summary of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.text_table import format_table
from cloudevents_kafka.spark._java import recent_reports
from cloudevents_kafka.spark.pipeline.notes import BatchCounts, GapCounts

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# For each step of a batch: the names of its durations in Spark's reports.
_STEPS: Final = {
    "plan": ("latestOffset", "getBatch", "queryPlanning", "walCommit"),
    "write": ("addBatch",),
    "checkpoint": ("commitOffsets",),
}


class BatchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that has landed: its counts, its duration, and its distance from the ends of the topics.

    ``lags`` maps each partition, such as ``orders[0]``, to the number of offsets from the end of the batch to
    the newest end offset of the partition that Spark knows. ``behind`` is the sum of the lags in ``lags``. If
    the pipeline was stopped before Spark reported the batch, ``behind`` and ``seconds`` are None, and
    ``lags`` is empty. ``age`` is the age of the newest landed record, in seconds, at the time of the report.
    ``steps`` maps the name of each step of a batch to the step's duration in seconds. The steps of a batch
    are Spark's "plan", the "check" of the topics, "write" (which includes reading), the "commit" to the
    tables, and Spark's "checkpoint". ``rows`` maps each table to the number of rows in the files that were
    committed to it, if this number is known.

    Examples:
        >>> from cloudevents_kafka.spark import EventPipeline, PipelineOptions
        >>> from cloudevents_kafka.spark.pipeline import BatchProgress
        >>> def report(batch: BatchProgress) -> None:
        ...     print(f"batch {batch.number}: {batch.counts.events} events in {batch.seconds} s")
        >>> options = PipelineOptions(bootstrap_servers="kafka:9092", topics=("orders",), out="lake/orders")
        >>> pipeline = EventPipeline(options, report=report)
    """

    number: int
    counts: BatchCounts
    seconds: float | None = None
    behind: int | None = None
    lags: Mapping[str, int] = {}
    age: float | None = None
    steps: Mapping[str, float] = {}
    rows: Mapping[str, int] = {}

    def __str__(self) -> str:
        counts = self.counts
        parts = [f"batch {self.number}: {counts.read:,} read = {counts.sums}"]
        if self.seconds:
            parts.append(f"{counts.read / self.seconds:,.0f} records/s")
        if self.behind is not None:
            parts.append(lag_text(self.lags))
        if self.age is not None:
            parts.append(f"newest {self.age:,.0f} s old")
        return ", ".join(parts)


def stopped_text(topic: str, reason: str) -> str:
    """Return a text for users that says which topic a threshold has stopped, and why."""
    return (
        f"topic {topic} is stopped, the others go on: {reason}. All records that were read from this topic "
        "have landed. To continue after these records, start the pipeline again with this topic"
    )


def lag_text(lags: Mapping[str, int]) -> str:
    """Return a text with the sum of the lags of all partitions.

    If ``lags`` has several partitions, the text also contains the highest lag.
    """
    text = f"{sum(lags.values()):,} behind"
    if len(lags) > 1 and any(lags.values()):
        highest = max(lags, key=lags.__getitem__)
        text += f" (most {highest}: {lags[highest]:,})"
    return text


def recent_progress(query: StreamingQuery, first: int) -> dict[int, Mapping[str, Any]]:
    """Return Spark's reports of recent batches by batch number, without the batches before ``first``."""
    found: dict[int, Mapping[str, Any]] = {}
    for progress in recent_reports(query):
        if progress["batchId"] < first:
            break
        found.setdefault(progress["batchId"], progress)
    return found


def batch_progress(progress: Mapping[str, Any], counts: BatchCounts, now: float) -> BatchProgress:
    """Return a batch's progress from Spark's report and the counts; ``now`` is in seconds since 1970."""
    lags, durations = find_lags(progress), progress["durationMs"]
    return BatchProgress(
        number=progress["batchId"],
        counts=counts,
        seconds=durations.get("triggerExecution", 0) / 1000,
        behind=sum(lags.values()),
        lags=lags,
        age=None if counts.newest is None else max(0.0, now - counts.newest / 1000),
        steps={step: sum(durations.get(name, 0) for name in of) / 1000 for step, of in _STEPS.items()},
    )


def find_lags(progress: Mapping[str, Any]) -> dict[str, int]:
    """Return the lag of each partition, in offsets, from Spark's report about a batch."""
    lags: dict[str, int] = {}
    for source in progress["sources"]:
        end = _offsets(source.get("endOffset"))
        for (topic, partition), offset in _offsets(source.get("latestOffset")).items():
            lags[f"{topic}[{partition}]"] = max(0, offset - end.get((topic, partition), 0))
    return lags


def _offsets(value: Any) -> dict[tuple[str, str], int]:
    """Return offsets by topic and partition, from JSON or from values in Spark's report.

    The result is empty if Spark does not know any offsets yet.
    """
    try:
        if isinstance(value, str):
            value = msgspec.json.decode(value)
        topics = msgspec.convert(value, dict[str, dict[str, int]])
    except msgspec.MsgspecError:
        return {}
    return {
        (topic, partition): offset for topic, parts in topics.items() for partition, offset in parts.items()
    }


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run of the pipeline.

    ``counts`` contains the counts of this run, and ``total`` contains the counts of all batches in the
    folder. ``batches`` is the number of batches that this run has landed. ``recovered`` is the number of the
    batch of an earlier run that this run has finished, or None if there was no such batch. ``complete`` says
    whether the run has read all records; a run that was stopped is not complete. ``skipped`` counts the
    offsets without a record, by topic, then by partition. An offset without a record belongs to a transaction
    marker, or to a record that has expired, was compacted, or is part of an aborted transaction.
    ``isolation_level`` is ``read_uncommitted`` if the run also reads records of aborted transactions.
    ``tables`` maps the names in ``counts.by_table``, and the name of the quarantine, to the tables' full
    names or URLs. If a threshold has stopped topics, ``stopped`` maps each of these topics to the reason. For
    a run with the option ``backfill``, ``backfill`` contains `GapCounts` by topic and partition. In the JSON
    of the summary, the name of ``counts`` is ``tally``.

    Examples:
        >>> from cloudevents_kafka.spark import EventPipeline, PipelineOptions
        >>> brokers = "localhost:9092"
        >>> options = PipelineOptions(bootstrap_servers=brokers, topics=("orders",), out="lake/", once=True)
        >>> summary = EventPipeline(options, spark=spark).run()
        >>> summary.complete, summary.batches, summary.counts.read
        (True, 1, 2)
    """

    topics: tuple[str, ...]
    events_table: str
    quarantine_table: str
    checkpoint: str
    batches: int
    recovered: int | None
    complete: bool
    seconds: float
    counts: BatchCounts = msgspec.field(name="tally")
    total: BatchCounts
    skipped: Mapping[str, Mapping[str, int]] = {}
    tables: Mapping[str, str] = {}
    isolation_level: str = "read_committed"
    backfill: Mapping[str, Mapping[str, GapCounts]] = {}
    stopped: Mapping[str, str] = {}

    @property
    def rate(self) -> float:
        """The number of records that the run has read per second."""
        return self.counts.read / self.seconds if self.seconds else 0.0

    def to_json(self) -> str:
        """Return the summary as one JSON object, indented."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode()

    def to_text(self) -> str:
        """Return the summary as text with aligned tables."""
        counts = self.counts
        batches = pluralize(self.batches, "batch", "batches")
        pace = f"{batches}, {self.seconds:.1f} s, {self.rate:,.0f} records/s, {self.isolation_level}"
        parts = [f"{pluralize(counts.read, 'record')} read = {counts.sums}  ({pace})"]
        if self.recovered is not None:
            parts.append(f"batch {self.recovered} of an earlier run was finished first")
        parts.extend(stopped_text(topic, reason) for topic, reason in self.stopped.items())
        if counts.events:
            parts.append(format_table(["event type", *counts.modes, "all"], _type_rows(counts)))
        if counts.tolerated:
            header = ["read leniently", "clause", "events"]
            parts.append(format_table(header, [*_rule_rows(counts), ["", "", f"{counts.tolerated:,}"]]))
        if counts.changes:
            rows = [[name, f"{number:,}"] for name, number in counts.changes.items()]
            parts.append(format_table(["rows", "records"], rows))
        if counts.routed:
            parts.append(format_table(["table", "events"], _table_rows(counts)))
        if counts.quarantined:
            parts.append(self.quarantine_text("quarantined as"))
        if counts.read or any(sum(parts.values()) for parts in self.skipped.values()):
            header = ["partition", "first", "last", "records", "offsets without a record"]
            parts.append(format_table(header, _offset_rows(counts, self.skipped)))
        if self.backfill:
            header = ["backfill of", "gaps", "had landed", "had expired", "left to the pipeline"]
            parts.append(format_table(header, _gap_rows(self.backfill)))
        if self.total.read != counts.read:
            total = self.total
            sums = total.sums.replace(" +", ",")
            parts.append(f"total in the tables: {sums}, of {pluralize(total.read, 'record')}")
        parts.append(self.folders_text())
        return "\n\n".join(parts)

    def quarantine_text(self, label: str) -> str:
        """Return a table of quarantined records by verdict and reason, with the first heading ``label``."""
        rows = [
            [verdict, reason, f"{number:,}"]
            for verdict, reasons in sorted(self.counts.by_reason.items())
            for reason, number in sorted(reasons.items())
        ]
        return format_table([label, "reason", "records"], [*rows, ["", "", f"{self.counts.quarantined:,}"]])

    def folders_text(self) -> str:
        """Return a table of the folders to which the run has written, as text."""
        folders = {
            "events": self.events_table,
            **self.tables,
            "quarantine": self.quarantine_table,
            "checkpoint": self.checkpoint,
        }
        return format_table(None, [*map(list, folders.items())])


def _type_rows(counts: BatchCounts) -> list[list[str]]:
    modes = counts.modes
    rows = [
        [name, *(f"{by_mode.get(mode, 0):,}" for mode in modes), f"{sum(by_mode.values()):,}"]
        for name, by_mode in sorted(counts.by_type.items())
    ]
    return [*rows, ["", *(f"{number:,}" for number in modes.values()), f"{counts.events:,}"]]


# Names are untrusted, so they were removed from these rules. The texts here replace the incomplete rules.
_WHAT: Final = {
    "was read as": "a name was read as another name",
    "was ignored:": "a header was ignored, because another header is present",
}


def _rule_rows(counts: BatchCounts) -> list[list[str]]:
    return [
        [_WHAT.get(rule, rule), clause, f"{number:,}"]
        for clause, rules in sorted(counts.by_tolerated.items())
        for rule, number in sorted(rules.items())
    ]


def _table_rows(counts: BatchCounts) -> list[list[str]]:
    rows = [[table, f"{number:,}"] for table, number in counts.by_table.items() if number]
    return [*rows, ["", f"{counts.events:,}"]]


def _gap_rows(backfill: Mapping[str, Mapping[str, GapCounts]]) -> list[list[str]]:
    return [
        [f"{topic}[{partition}]", *(f"{n:,}" for n in (part.gaps, part.landed, part.expired, part.ahead))]
        for topic, parts in sorted(backfill.items())
        for partition, part in sorted(parts.items(), key=lambda item: int(item[0]))
    ]


def _offset_rows(counts: BatchCounts, skipped: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    return [
        [
            f"{topic}[{partition}]",
            *(f"{value:,}" for value in (part.first, part.last, part.records)),
            f"{skipped.get(topic, {}).get(partition, 0):,}",
        ]
        for topic, parts in sorted(counts.offsets.items())
        for partition, part in sorted(parts.items(), key=lambda item: int(item[0]))
    ]
