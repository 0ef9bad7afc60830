"""The names of all metrics of a pipeline, and their values for one batch.

JSON lines, Prometheus and the documentation all use the names in `FIGURES`. In Prometheus, the value of a
counter is the sum since the start of the run. In a JSON line, the value of a counter is only the number for
one batch.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import Final, NamedTuple

from cloudevents_kafka.spark.pipeline.notes import BatchCounts
from cloudevents_kafka.spark.pipeline.watching._reports import BatchProgress

PREFIX: Final = "cloudevents_kafka_pipeline_"
_CLAUSE: Final = re.compile(r"\[([^\]]+)\]\Z")  # found at the end of a reason

Labels = tuple[str, ...]
# The values of each metric, by the values of its labels.
Values = dict[str, dict[Labels, float]]


class Figure(NamedTuple):
    """A metric: its name without `PREFIX`, the names of its Prometheus labels, and its description."""

    name: str
    labels: tuple[str, ...]
    text: str

    @property
    def is_counter(self) -> bool:
        """Whether the value of the metric grows with each batch."""
        return self.name.endswith("_total")


FIGURES: Final = (
    Figure("batches_total", (), "Batches that have landed."),
    Figure("records_total", (), "Records that have landed, as events or in the quarantine."),
    Figure("events_total", ("type",), "Events by type."),
    Figure("quarantined_records_total", ("verdict", "clause"), "Records that went to the quarantine."),
    Figure(
        "counted_rows_total",
        ("table",),
        "Rows for the table that the pipeline counted while it read the records.",
    ),
    Figure("committed_rows_total", ("table",), "Rows in the files that were committed."),
    Figure("batch_seconds_total", (), "Duration of the batches in seconds, as Spark measures it."),
    Figure("step_seconds_total", ("step",), "Seconds by step: plan, check, write, commit, checkpoint."),
    Figure("records_per_second", (), "Records of the last batch, divided by the seconds of this batch."),
    Figure(
        "lag_records",
        ("topic", "partition"),
        "Number of offsets that have not landed, "
        "up to the newest end offset of the partition that Spark knows.",
    ),
    Figure(
        "lag_seconds",
        ("topic", "partition"),
        "Age of the newest landed record; 0 if all records have landed.",
    ),
    Figure(
        "topic_stopped", ("topic",), "1 if the pipeline has stopped reading the topic because of a threshold."
    ),
)


class Lags:
    """How far the pipeline is behind the end of each partition, in offsets and in seconds.

    If a wrong clock has set the timestamp of a record to a time in the future, the age of the record is
    counted from the time at which the record landed.
    """

    def __init__(self) -> None:
        self.records: dict[Labels, float] = {}
        self._newest: dict[Labels, float] = {}

    def see(self, counts: BatchCounts) -> None:
        """Remember the times of the newest records, by partition."""
        now = time.time()
        for topic, parts in counts.offsets.items():
            for number, part in parts.items():
                newest = min(now, (part.newest or 0) / 1000)
                self._newest[topic, number] = max(newest, self._newest.get((topic, number), 0))

    def add(self, batch: BatchProgress) -> None:
        """Remember the lags after a batch, if Spark has reported lags."""
        self.see(batch.counts)
        if batch.behind is not None:
            names = ((name[:-1].rpartition("["), lag) for name, lag in batch.lags.items())
            self.records = {(topic, number): lag for (topic, _, number), lag in names}

    def seconds(self, now: float) -> dict[Labels, float]:
        """Return the lags in seconds, for those partitions whose lag is known."""
        known = {place: lag for place, lag in self.records.items() if not lag or self._newest.get(place)}
        return {place: max(0.0, now - self._newest[place]) if lag else 0.0 for place, lag in known.items()}


def batch_values(batch: BatchProgress) -> Values:
    """Return the values of all metrics for one batch, except the metrics of the lag."""
    counts = batch.counts
    quarantined: Counter[Labels] = Counter()
    for verdict, reasons in counts.by_reason.items():
        for reason, number in reasons.items():
            clause = _CLAUSE.search(reason)
            quarantined[verdict, clause[1] if clause else ""] += number
    values: Values = {
        "batches_total": {(): 1},
        "records_total": {(): counts.read},
        "events_total": {(name,): sum(modes.values()) for name, modes in counts.by_type.items()},
        "quarantined_records_total": dict(quarantined),
        "counted_rows_total": {(table,): counts.rows.get(table, 0) for table in batch.rows},
        "committed_rows_total": {(table,): rows for table, rows in batch.rows.items()},
        "step_seconds_total": {(step,): seconds for step, seconds in batch.steps.items()},
    }
    if batch.seconds:
        values["batch_seconds_total"] = {(): batch.seconds}
        values["records_per_second"] = {(): counts.read / batch.seconds}
    return values
