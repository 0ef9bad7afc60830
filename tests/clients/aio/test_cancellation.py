"""Each event has one outcome, however its sender is cancelled and its client behaves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import AsyncEventProducer, DeliveryError, Event, from_record
from cloudevents_kafka.testing import FakeProducer
from tests.support import strategies as make


@dataclass
class Sending:
    """How one event is sent: awaited or not, after some turns of the loop, cancelled after some others."""

    way: Literal["send", "drain", "nowait"]
    begins: int
    cancelled: int | None
    fails: bool


@dataclass
class Outcomes:
    """What the senders have seen, by the ids of events."""

    delivered: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


sendings = st.builds(
    Sending,
    way=st.sampled_from(["send", "drain", "nowait"]),
    begins=st.integers(0, 5),
    cancelled=st.none() | st.integers(0, 10),
    fails=st.booleans(),
)


class Failing(FakeProducer):
    """Fails the events whose id says so, and reports in turns with the loop."""

    def produce(self, topic: str, *args: object, **options: object) -> None:
        fails = dict(options["headers"])["ce_id"].endswith(b"fails")  # type: ignore[call-overload]
        super().produce("failing" if fails else topic, *args, **options)  # type: ignore[arg-type]

    def _deliver_next(self) -> object:
        with self._lock:
            first = self._pending[0] if self._pending else None
        if first is not None and first.message.topic() == "failing" and not self.hold and first.error is None:
            self.fail_next("_MSG_TIMED_OUT")
        return super()._deliver_next()


async def send(producer: AsyncEventProducer[Failing], id: str, how: Sending, outcomes: Outcomes) -> None:
    event, queued = Event(id=id, source="/s", type="t"), False
    try:
        async with asyncio.timeout(None if how.cancelled is None else how.cancelled / 1000):
            await asyncio.sleep(how.begins / 1000)
            if how.way == "send":
                queued = True  # or not: the sender cannot know
                await producer.send(event)
                outcomes.delivered.append(id)
                return
            if how.way == "drain":
                await producer.drain()
            delivery = producer.send_nowait(event)
            queued = True
            if how.way == "drain":
                await delivery
                outcomes.delivered.append(id)
            else:
                outcomes.unknown.append(id)
    except asyncio.QueueFull:
        outcomes.refused.append(id)
    except DeliveryError as error:
        outcomes.failed += [each.event.id for each in error.failed]
    except TimeoutError:
        (outcomes.unknown if queued else outcomes.refused).append(id)


async def run(all_sendings: list[Sending], bound: int, limit: int, held: int) -> None:
    client, outcomes = Failing(queue_limit=limit), Outcomes()
    client.hold = held > 0
    producer = AsyncEventProducer(client, topic="orders", max_in_flight=bound)
    asyncio.get_running_loop().call_later(held / 1000, setattr, client, "hold", False)
    by_name = {f"{number}{'fails' if how.fails else ''}": how for number, how in enumerate(all_sendings)}
    async with asyncio.timeout(100):
        await asyncio.gather(*(send(producer, id, how, outcomes) for id, how in by_name.items()))
        try:
            await producer.close()
        except DeliveryError as error:
            outcomes.failed += [each.event.id for each in error.failed]
    arrived = [from_record(message).id for message in client.log]
    ended = set(arrived + outcomes.failed)
    assert len(ended) == len(arrived + outcomes.failed), "once, and one or the other"
    assert set(outcomes.delivered) <= set(arrived)
    assert ended.isdisjoint(outcomes.refused)
    assert ended <= set(outcomes.delivered + outcomes.failed + outcomes.unknown)
    certain = {id for id, how in by_name.items() if how.way != "send"}
    assert certain - set(outcomes.refused) <= ended


@make.examples(60)
@given(
    st.lists(sendings, min_size=1, max_size=40),
    st.sampled_from([1, 2, 7, 1000]),
    st.sampled_from([1, 3, 1000]),
    st.integers(0, 8),
)
def test_each_event_has_one_outcome(all_sendings: list[Sending], bound: int, limit: int, held: int) -> None:
    """An event arrives once, or its failure is raised once, or it was never queued; nothing hangs."""
    asyncio.run(run(all_sendings, bound, limit, held))
