"""Records of aborted transactions do not land, unless a setting says so."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from tests.spark.pipeline.lake import Lake

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def send(lake: Lake, count: int, *, commit: bool) -> None:
    """Send events in a transaction."""
    servers = lake.broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{lake.topic}-{commit}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(count):
        record = to_record(Event(id=str(number), source="/s", type=f"committed={commit}"))
        producer.produce(lake.topic, value=record.value, headers=list(record.headers))
    assert producer.flush(30) == 0
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def test_aborted_transactions(lake: Lake) -> None:
    """The default is read_committed; the summary has the level, and the offsets that have no record."""
    send(lake, 13, commit=True)
    send(lake, 7, commit=False)
    send(lake, 2, commit=True)
    summary = lake.run()
    assert (summary.counts.events, summary.isolation_level) == (15, "read_committed")
    assert summary.skipped == {lake.topic: {"0": 10}}  # 7 records, and the markers of 3 transactions
    assert {row[0] for row in lake.rows()} == {"committed=True"}


@pytest.mark.release  # test_aborted_transactions is its sample
def test_uncommitted_records(lake: Lake) -> None:
    """With read_uncommitted all records land."""
    send(lake, 3, commit=True)
    send(lake, 2, commit=False)
    summary = lake.run(kafka_options={"kafka.isolation.level": "read_uncommitted"})
    assert (summary.counts.events, summary.isolation_level) == (5, "read_uncommitted")
    assert "5 events + 0 quarantined  (1 batch" in summary.to_text()
    assert "read_uncommitted)" in summary.to_text()
