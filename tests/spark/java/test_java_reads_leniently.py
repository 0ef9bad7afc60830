"""The Java function reads what known producers send, exactly as `decode` does leniently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", minversion="4.0")

from cloudevents_kafka import Record, register_format
from cloudevents_kafka.formats import registry
from cloudevents_kafka.formats.json import JsonFormat
from tests.spark.deviating import deviating, producers
from tests.spark.generated import generated
from tests.spark.records import BASE, changed, edges, structured, vectors
from tests.spark.rows import expected, in_order, read_by_java, rows_of
from tests.support import peer_samples
from tests.support.reported_records import REPORTED
from tests.support.samples import one_in
from tests.support.strategies import scaled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compare(spark: SparkSession, records: list[Record]) -> Counter[str]:
    """Check each event that Java reads; return the numbers of events read and left, by kind."""
    read = read_by_java(rows_of(spark, records), lenient=True)
    counts: Counter[str] = Counter()
    for offset, record in enumerate(records):
        wanted = expected(record, lenient=True)
        if offset in read:
            assert in_order(read[offset]) == in_order(wanted), record
        if "error" not in wanted:
            kind = "deviating" if "tolerated" in wanted else "valid"
            counts[f"{kind}, {'read' if offset in read else 'left'}"] += 1
    return counts


def test_no_event_of_a_known_producer_needs_python(spark: SparkSession) -> None:
    """Java reads the events of all producers in `spec-conformance/lenient.md`, in JSON and in binary mode."""
    known = producers()
    counts = compare(spark, [record for _, record in known])
    assert counts["deviating, read"] >= 20
    assert (counts["deviating, left"], counts["valid, left"]) == (0, 0)


@pytest.mark.parametrize("peer", one_in(3, peer_samples.PEERS))
def test_valid_events_are_read_by_java(spark: SparkSession, peer: str) -> None:
    """Lenient reading leaves no more of the valid records of other SDKs to Python than strict reading."""
    samples = [sample for sample in peer_samples.read(peer) if sample.encoding in ("binary", "json")]
    counts = compare(spark, [sample.record for sample in samples if sample.is_event])
    assert counts["valid, left"] == 0
    assert counts["valid, read"] >= 300


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(2, 12))]
)
def test_records_with_random_deviations(spark: SparkSession, seed: int) -> None:
    """Java agrees with `decode` on each record that it reads, and reads most of those of few deviations."""
    counts = compare(spark, [*deviating(scaled(12_000), seed), *generated(scaled(3000), seed + 100)])
    assert counts["deviating, read"] > scaled(1500)
    assert counts["valid, read"] > scaled(1500)


def test_vectors_edges_and_changed_records(spark: SparkSession) -> None:
    """So it does on vectors, edges and records with small changes, also as JSON without headers."""
    records = [*vectors(), *edges(), *changed(scaled(2000), seed=3)]
    bare = [Record(value=record.value) for record in records]
    counts = compare(spark, [*records, *bare])
    assert counts["deviating, read"] > scaled(1000)


def test_reported_records(spark: SparkSession) -> None:
    """Java agrees with `decode` on what public reports had, with and without the headers."""
    reported = [record for *_, record, _, _ in REPORTED]
    compare(spark, [*reported, *(Record(value=record.value) for record in reported)])


@pytest.mark.usefixtures("compiled")
def test_the_plan_is_compiled(spark: SparkSession) -> None:
    """No compiled method exceeds 8,000 bytes, which the JVM would not optimize, and Python is called once."""
    from cloudevents_kafka.spark import decode_events

    df = decode_events(rows_of(spark, [record for _, record in producers()]), lenient=True)
    execution: Any = df._jdf.queryExecution()
    stages = execution.debug().codegenToSeq()
    sizes = [stages.apply(n)._3().maxMethodCodeSize() for n in range(stages.size())]
    assert sizes
    assert max(sizes) < 8000
    assert execution.executedPlan().toString().count("ArrowEvalPython") == 1


@pytest.fixture
def formats() -> Iterator[None]:
    """Forget what a test registers."""
    before = registry.registered()
    yield
    registry.restore(before)


@pytest.mark.usefixtures("formats")
def test_a_registered_json_format(spark: SparkSession) -> None:
    """If a user registered another format named json, Python reads JSON, with a content-type or without."""
    register_format("json", JsonFormat)
    records = [structured(BASE), Record(value=structured(BASE).value)]
    assert read_by_java(rows_of(spark, records), lenient=True) == {}
