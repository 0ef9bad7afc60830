"""Results of the demo that are consistent."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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
