"""The reports of a pipeline: explained failures, progress and summary."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from cloudevents_kafka.spark.pipeline._errors import failure_of
from cloudevents_kafka.spark.pipeline.notes import BatchCounts, CountMismatch, PartitionCounts
from cloudevents_kafka.spark.pipeline.session._session import _JAVA_DIED
from cloudevents_kafka.spark.pipeline.watching._reports import Summary, batch_progress
from tests.support.cases import each

COUNTS = BatchCounts(
    read=3,
    events=2,
    quarantined=1,
    by_type={"a\x1b[2J": {"binary": 2}},
    by_reason={"batch": {"no batches [K-01]": 1}},
    tolerated=1,
    by_tolerated={"K-05": {"was read as": 1}, "N-01": {"was read as": 1}},
    offsets={"t": {"0": PartitionCounts(5, 9, 3)}},
    newest=20_000,
)

WORKER_FAILED = """
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
ModuleNotFoundError: No module named 'y'

	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:1)
"""


UNION = """[INCOMPATIBLE_COLUMN_TYPE] UNION can only be performed. SQLSTATE: 42825;
'Union false, false
:- Project [id#1, value#2]
:  +- LogicalRDD [id#1, value#2], false
+- Project [id#3]
   +- LogicalRDD [id#3], false
"""
ALTER = """[FIELD_ALREADY_EXISTS] Cannot add column. SQLSTATE: 42710; line 1 pos 0;
AddColumns [QualifiedColType(Some(x)), id#134]
"""
CALLED = """py4j.protocol.Py4JJavaError: An error occurred while calling o60.sql.
: java.lang.IllegalStateException: no
	at py4j.Gateway.invoke(Gateway.java:282)
"""


@each(
    ("text", "words"),
    [
        ("x\nCaused by: java.lang.IllegalStateException: Some data may have been lost", "--allow-data-loss"),
        ("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: no", "create it first"),
        (
            "Caused by: org.apache.kafka.common.errors.TimeoutException: Timed out waiting",
            "no broker answered",
        ),
        (
            "Caused by: org.apache.kafka.TimeoutException: Topic x not present in metadata after",
            "the topic does not exist",
        ),
        (
            "Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is 2 bytes",
            "raise kafka.max.request.size",
        ),
        ("Caused by: org.apache.kafka.common.errors.SaslAuthenticationException: x", "refused"),
        (
            "java.lang.OutOfMemoryError: Java heap space",
            "raise the limit (-X spark.driver.memory=4g), or run fewer tasks at a time (--master 'local[2]')",
        ),
        (
            "Caused by: io.netty.util.internal.OutOfDirectMemoryError: failed to allocate 16777216 byte(s)",
            "Spark ran out of memory",
        ),
        (
            "Caused by: org.apache.arrow.memory.OutOfMemoryException: Failure allocating buffer.",
            "Spark ran out of memory",
        ),
        (
            "Total size of serialized results of 14 tasks (2 GiB) is bigger than spark.driver.maxResultSize",
            "-X spark.driver.maxResultSize=4g",
        ),
        (
            "Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module named 'y'\n",
            "named 'y'",
        ),
        ("Caused by: java.lang.IllegalStateException: Log file was malformed: x", "a file of the checkpoint"),
        (
            "Caused by: [MALFORMED_RECORD_IN_PARSING] Malformed records are detected: malformed",
            "Spark stopped",
        ),
        (WORKER_FAILED, "Spark stopped: ModuleNotFoundError: No module named"),
        (
            'Cannot invoke "scala.collection.IterableOps.map(x)" because "scala.Option.get()" is null',
            "SPARK-55271",
        ),
        ("something new", "Spark stopped: something new"),
        (UNION, "Spark stopped: [INCOMPATIBLE_COLUMN_TYPE] UNION can only be performed. SQLSTATE: 42825"),
        (ALTER, "Spark stopped: [FIELD_ALREADY_EXISTS] Cannot add column. SQLSTATE: 42710; line 1 pos 0"),
        (CALLED, "Spark stopped: java.lang.IllegalStateException: no"),
        (
            "An error occurred\n: java.io.IOException: No space left on device\n\tat x",
            "Spark stopped: java.io.IOException: No space left on device\nfree some space",
        ),
    ],
)
def test_explanations_of_failures(text: str, words: str) -> None:
    """An error of Spark is reduced to its cause and advice."""
    assert words in str(failure_of(text))
    assert not re.search(r"\tat |LogicalRDD|\+-|:-|== Physical|(?i:py4j)", str(failure_of(text)))


def test_progress_has_the_lag() -> None:
    """The distance to the end is the sum of all partitions whose ends Spark knows."""
    source = {"latestOffset": '{"t":{"0":10,"1":4}}', "endOffset": '{"t":{"0":7}}'}
    none = {"latestOffset": "None", "endOffset": "None"}
    progress = {"batchId": 3, "durationMs": {"triggerExecution": 500}, "sources": [source, none]}
    batch = batch_progress(progress, COUNTS, now=25.0)
    assert (batch.behind, batch.lags) == (7, {"t[0]": 3, "t[1]": 4})
    assert str(batch) == (
        "batch 3: 3 read = 2 events + 1 quarantined, 6 records/s, 7 behind (most t[1]: 4), newest 5 s old"
    )


def test_summary_as_text() -> None:
    """The text has all counts and the offsets without a record, and no control characters of types."""
    text = Summary(
        topics=("t",),
        events_table="e",
        quarantine_table="q",
        checkpoint="c",
        batches=1,
        recovered=4,
        complete=True,
        seconds=2.0,
        counts=COUNTS,
        total=COUNTS.merge(COUNTS),
        skipped={"t": {"0": 1002}},
    ).to_text()
    assert "3 records read = 2 events + 1 quarantined  (1 batch, 2.0 s, 2 records/s, read_committed)" in text
    assert "batch 4 of an earlier run was finished first" in text
    assert "total in the tables: 4 events, 2 quarantined, of 6 records" in text
    assert "\x1b" not in text
    assert [line.split() for line in text.splitlines() if "was read as" in line] == [
        [*["a", "name", "was", "read", "as", "another", "name"], clause, "1"] for clause in ("K-05", "N-01")
    ]
    assert "\\x1b[2J" in text
    assert [line.split() for line in text.splitlines() if "t[0]" in line] == [
        ["t[0]", "5", "9", "3", "1,002"]
    ]


COMPARED = BatchCounts(
    read=9,
    events=4,
    duplicates=2,
    tombstones=1,
    quarantined=2,
    by_type={"t": {"binary": 4}},
    by_reason={"refused": {"upsert: a key must not be null": 2}},
    changes={"inserted": 3, "deleted": 1, "older": 1},
    offsets={"t": {"0": PartitionCounts(0, 8, 9)}},
)


def test_counts_of_compared_batches() -> None:
    """Duplicates and tombstones are counted among the records that were read, and changes are shown."""
    total = COMPARED.check().merge(COMPARED).check()
    assert total.sums == "8 events + 4 quarantined + 4 duplicates + 2 tombstones"
    assert total.changes == {"inserted": 6, "deleted": 2, "older": 2}
    summary = Summary(
        topics=("t",),
        events_table="e",
        quarantine_table="q",
        checkpoint="c",
        batches=1,
        recovered=None,
        complete=True,
        seconds=2.0,
        counts=COMPARED,
        total=total,
    )
    assert "9 records read = 4 events + 2 quarantined + 2 duplicates + 1 tombstone  (1" in summary.to_text()
    assert ["inserted", "3"] in [line.split() for line in summary.to_text().splitlines()]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"duplicates": 3}, "9 records were read, but events and quarantined records, with duplicates and"),
        ({"changes": {"updated": 4}}, "5 records were to change rows, but .* add up to 4"),
    ],
)
def test_wrong_counts_of_compared_batches(changed: dict[str, Any], words: str) -> None:
    """Counts that contradict each other are refused."""
    with pytest.raises(CountMismatch, match=words):
        replace(COMPARED, **changed).check()


def test_python_processes() -> None:
    """A process of Spark that was killed, or that does not start, is not taken for a broker."""
    slow = "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"
    assert "the machine is busy" in str(failure_of(f"Caused by: {slow}"))
    assert "a Python process of Spark ended" in str(failure_of("java.io.EOFException"))


@pytest.mark.parametrize(
    "advice", [str(failure_of("OutOfMemoryError")), str(failure_of("java.io.EOFException")), _JAVA_DIED]
)
def test_advice_for_the_same_batch(advice: str) -> None:
    """Advice about memory begins with what helps a planned batch, and says which batches a limit changes."""
    assert re.search(
        r"--master 'local\[2\]'.* --max-records makes only later batches smaller, except in a backfill$",
        advice,
    )
