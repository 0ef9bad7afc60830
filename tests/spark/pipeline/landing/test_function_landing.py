"""A function is called with each batch, at least once, with exact counts of rows that are kept meanwhile."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import EventBatch, EventPipeline, PipelineFailed, PipelineOptions
from cloudevents_kafka.spark.pipeline.notes import OffsetRange
from tests.spark.pipeline.lake import Lake, produce

if TYPE_CHECKING:
    from cloudevents_kafka.spark.pipeline import Summary
    from cloudevents_kafka.spark.pipeline.landing import EachBatch

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def send(lake: Lake, count: int) -> int:
    """Send events, one in Avro, and a record that is not an event; return the number of all."""
    produce(lake.broker, lake.topic, count)
    producer = Producer({"bootstrap.servers": lake.broker.bootstrap_servers})
    avro = to_record(Event(id="a", source="/s", type="avro"), mode="structured", format="avro")
    producer.produce(lake.topic, value=avro.value, headers=list(avro.headers))
    producer.produce(lake.topic, value=b"{", headers=[("ce_id", b"1")])
    assert producer.flush(30) == 0
    return count + 2


def run(lake: Lake, each_batch: EachBatch, **options: object) -> Summary:
    settings = {"topics": (lake.topic,), "out": str(lake.out), "once": True, **options}
    pipeline_options = PipelineOptions(bootstrap_servers=lake.broker.bootstrap_servers, **settings)
    with closing(EventPipeline(pipeline_options, spark=lake.spark, each_batch=each_batch)) as pipeline:
        pipeline.start()
        assert pipeline.wait()
        return pipeline.summary()


@pytest.mark.broker
def test_each_batch(lake: Lake) -> None:
    """Each batch is passed once, with its number and offsets, and all its rows, however they were read."""
    records = send(lake, 8)
    seen: list[tuple[int, set[int], set[int]]] = []

    def keep(batch: EventBatch) -> None:
        assert batch.events.columns[:3] == ["id", "source", "type"]
        assert batch.quarantine.columns[0] == "error"
        rows = [{row["offset"] for row in frame.collect()} for frame in (batch.events, batch.quarantine)]
        assert batch.events.count() == len(rows[0])  # read again, while it is kept
        range_ = batch.offsets[lake.topic]["0"]
        assert rows[0] | rows[1] == set(range(range_.start, range_.end))
        seen.append((batch.number, *rows))

    summary = run(lake, keep, max_records=6)
    assert [number for number, *_ in seen] == [0, 1]
    assert seen[0][1:] == (set(range(6)), set())
    assert seen[1][1:] == ({6, 7, 8}, {9})
    assert (summary.counts.read, summary.counts.events, summary.counts.quarantined) == (records, 9, 1)
    assert summary.events_table.startswith("function test_each_batch.")
    assert sorted(path.name for path in lake.out.iterdir()) == ["_batches", "_checkpoint", "_lock"]


@pytest.mark.broker
def test_function_fails(lake: Lake) -> None:
    """An error of the function ends the run with the batch's number; the batch is passed again, first."""
    send(lake, 3)
    seen: list[tuple[int, object]] = []

    def fail(batch: EventBatch) -> None:
        seen.append((batch.number, batch.offsets))
        raise OverflowError("too much")

    for start in ("earliest", "latest"):  # the second has no effect, as the function may have written rows
        with pytest.raises(
            PipelineFailed, match=r"batch 0, lake-\d+\[0\]@0 to 4, raised OverflowError: too much"
        ) as e:
            run(lake, fail, start=start)
        assert isinstance(e.value.__cause__, OverflowError)
    produce(lake.broker, lake.topic, 2)
    summary = run(lake, lambda batch: seen.append((batch.number, batch.offsets)))
    first = (0, {lake.topic: {"0": OffsetRange(0, 5)}})
    assert seen == [first, first, first, (1, {lake.topic: {"0": OffsetRange(5, 7)}})]
    assert (summary.recovered, summary.total.read) == (0, 7)


@pytest.mark.broker
def test_spark_fails(lake: Lake) -> None:
    """An error of Spark in the function is its cause, without the stack trace, and with advice."""
    send(lake, 1)

    def fail(batch: EventBatch) -> None:
        text = "java.lang.RuntimeException: RecordTooLargeException: 2 MB"
        batch.events.selectExpr(f"raise_error('{text}')").collect()

    with pytest.raises(PipelineFailed, match=r"batch 0, .* raised \w+: Spark stopped: ") as failed:
        run(lake, fail)
    assert "max.request.size" in str(failed.value)
    assert "\tat " not in str(failed.value)


@pytest.mark.parametrize("options", [{"to": "delta"}, {"tables": {"a": "b"}}], ids=str)
def test_function_and_tables(options: dict[str, object]) -> None:
    """A function takes the place of tables."""
    found = PipelineOptions(bootstrap_servers="b:1", topics=("t2",), out="o", **options)
    with pytest.raises(ValueError, match="must not be set with each_batch"):
        EventPipeline(found, each_batch=print)


def test_a_coroutine_function() -> None:
    """A function that nothing would await is refused; its batches would count as landed."""

    async def later(_: EventBatch) -> None:
        """Do nothing, later."""

    found = PipelineOptions(bootstrap_servers="b:1", topics=("t2",), out="o")
    with pytest.raises(TypeError, match="each_batch must be a plain function, got a coroutine function"):
        EventPipeline(found, each_batch=later)
