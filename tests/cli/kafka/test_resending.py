"""Each good record is sent once, and a bad one holds up no other."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest
from confluent_kafka import KafkaError

from cloudevents_kafka import Record
from cloudevents_kafka.cli.kafka.resending import Resender
from cloudevents_kafka.cli.kafka.topic_names import check_topic_name
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure

REFUSED = KafkaError(KafkaError.INVALID_RECORD, "no key")
AWAY = KafkaError(KafkaError._MSG_TIMED_OUT, "timed out")


class Model:
    """A sender to a broker that refuses a whole batch for one record of it, and may be away."""

    def __init__(self, chance: random.Random, away: float) -> None:
        self.delivered: Counter[bytes] = Counter()
        self._chance, self._away = chance, away
        self._batches: dict[str, list] = {}

    def send(self, record, origin, on_answer):
        check_topic_name(record.topic)
        if record.topic == "gone":
            raise BadUsage("no topic gone")
        if record.topic == "secret":
            error = BrokerFailure("refuses topic secret")
            error.is_of_topic = True
            raise error
        if record.value == b"too large":
            on_answer(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large"))
            return
        self._batches.setdefault(record.topic, []).append((record, on_answer))

    def flush(self):
        batches, self._batches = self._batches, {}
        for batch in batches.values():
            if self._chance.random() < self._away / 2:
                raise BrokerFailure("did not answer")
            error = AWAY if self._chance.random() < self._away else None
            if error is None and any(record.key is None for record, _ in batch):
                error = REFUSED
            for record, on_answer in batch:
                if error is None:
                    self.delivered[record.value] += 1
                on_answer(error)


def note(reports: list[str], where: str, reason: str) -> None:
    reports.append(f"{where}: {reason}")


def letters(chance: random.Random, count: int) -> tuple[list[Record], set[int]]:
    """Return records of two partitions, and the numbers of the bad ones."""
    records, bad = [], set()
    for number in range(count):
        record = Record(key=b"k", value=b"%d" % number, topic="a", partition=number % 2, offset=number // 2)
        changes = [
            {"topic": topic} for topic in ("gone", "secret", "", "no topic", "x" * 300, "\udc80\0", "..")
        ]
        changes += [{"key": None}, {"value": b"too large"}]
        if chance.random() < 0.2:
            bad.add(number)
            record = Record(
                **{
                    **{name: getattr(record, name) for name in Record.__struct_fields__},
                    **chance.choice(changes),
                }
            )
        records.append(record)
    return records, bad


@pytest.mark.parametrize("away", [0.0, 0.2], ids=["broker", "broker that is away at times"])
def test_random_runs(*, away: float) -> None:
    """Runs of a group, each behind what the one before has done, send all good ones and name the bad ones."""
    for seed in range(150):
        chance = random.Random(seed)
        records, bad = letters(chance, chance.randrange(40))
        model, starts, reports = Model(chance, away), [0, 0], []
        refused = runs = 0
        while any(record.offset >= starts[record.partition] for record in records):
            left = [record for record in records if record.offset >= starts[record.partition]]
            resender = Resender(model, partial(note, reports))
            while left and resender.failure is None:
                batch, left = left[:10], left[10:]
                for record in batch:
                    starts[record.partition] = record.offset + 1
                for record in resender.send((record, record) for record in batch):
                    starts[record.partition] = min(starts[record.partition], record.offset)
            refused += resender.refused
            runs += 1
            assert runs < 200
        good = {b"%d" % number for number in range(len(records)) if number not in bad}
        assert model.delivered.keys() == good
        if not away:
            assert (runs <= 1, set(model.delivered.values()) <= {1}) == (True, True)
            assert (refused, len(set(reports))) == (len(bad), len(bad))


def test_a_bad_record_is_reported_with_its_place() -> None:
    """The report has the topic, the partition and the offset, and the reason."""
    reports = []
    resender = Resender(Model(random.Random(1), 0), lambda *report: reports.append(report))
    origin = Record(topic="dead", partition=1, offset=7)
    targets = [Record(topic="gone"), Record(topic="a b"), Record(topic="a", value=b"too large", key=b"k")]
    assert resender.send((origin, target) for target in targets) == []
    assert reports == [
        ("dead[1]@7", "no topic gone"),
        ("dead[1]@7", "a topic name must have 1 to 249 letters, digits, '.', '_' and '-' only, got 'a b'"),
        ("dead[1]@7", "not delivered: too large"),
    ]
    assert (resender.refused, resender.failure) == (3, None)


def test_a_broker_that_is_away_ends_the_sending() -> None:
    """The records that were not delivered are returned, and the error has their number."""
    resender = Resender(Model(random.Random(1), 0), lambda *_: None)
    sender = resender._sender
    sender.flush = lambda: [answer(AWAY) for batch in sender._batches.values() for _, answer in batch]
    records = [Record(topic="a", key=b"k", offset=number) for number in range(3)]
    assert resender.send((record, record) for record in records) == records
    assert str(resender.failure.message) == "3 records not delivered; see above"
