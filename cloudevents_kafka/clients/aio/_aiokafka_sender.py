"""`AiokafkaSender`: sends through aiokafka's producer; for each topic, a separate task awaits ``send``."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from cloudevents_kafka.clients.aio._aiokafka_message import AiokafkaMessage
from cloudevents_kafka.clients.aio._checks import check_serializers, check_started
from cloudevents_kafka.clients.aio._sender import AsyncSender
from cloudevents_kafka.errors import EncodeError

OnReport = Callable[[Any, Any], Any]


class AiokafkaSender(AsyncSender):
    """Sends records through a client whose coroutine function ``send`` returns a future of the delivery.

    A call of ``send`` waits for metadata and for space in a batch, by default up to 40 seconds if a topic
    does not exist. For each topic, a separate task awaits ``send`` for one record after the other. The task
    of a topic ends when the queue of the topic is empty. At the end of an event loop, all tasks are
    cancelled, and these tasks with them, but no record is lost. The record that a cancelled task was sending
    stays the first in the queue, because aiokafka has not sent it. A new task for the topic begins when the
    next record is sent, or when a caller waits for a delivery or for space.
    """

    def __init__(self, client: Any, max_in_flight: int) -> None:
        super().__init__(max_in_flight)
        check_serializers(client)
        self._client = client
        self._is_started = False
        self.produce = self._enqueue
        self._queues: dict[str, deque[tuple[OnReport, dict[str, Any]]]] = {}  # by topic; none is empty
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def _enqueue(self, topic: str, *, on_delivery: OnReport, **record: Any) -> None:
        if not self._is_started:
            check_started(self._client)
            self._is_started = True
        if record["value"] is None and record["key"] is None:
            raise EncodeError(
                "a record must have a key or a value to be sent by aiokafka, and this event has no data; "
                "pass a key, or mode='structured'"
            )
        if "timestamp" in record:
            record["timestamp_ms"] = record.pop("timestamp")
        record["headers"] = list(record["headers"])  # the client refuses a subclass
        self._queues.setdefault(topic, deque()).append((on_delivery, {"topic": topic, **record}))
        self._begin(topic)

    def resume(self) -> None:
        """Begin to send the queued records of each topic, unless a task is already sending them."""
        for topic in list(self._queues):  # an eager task may end at once, and remove its queue
            self._begin(topic)

    def _begin(self, topic: str) -> None:
        task = self._tasks.get(topic)
        if task is None or task.done():
            self._tasks[topic] = task = asyncio.get_running_loop().create_task(self._send_queued(topic))
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # If nobody waits, the loop may be ending, and another task would never be done.
        if task.cancelled() and self._is_awaited():
            self.resume()

    def _is_awaited(self) -> bool:
        waiters = (*self._for_room, *self._for_none)
        return any(not waiter.done() for waiter in waiters) or self.deliveries.is_awaited()

    async def _send_queued(self, topic: str) -> None:
        queue = self._queues[topic]
        while queue:
            report, record = queue[0]
            try:
                future = await self._client.send(**record)
            except (Exception, asyncio.CancelledError) as error:
                if _is_cancelled():
                    raise
                queue.popleft()
                self._call(report, _describe(error), None)  # the delivery contains the error
            else:
                queue.popleft()
                future.add_done_callback(partial(self._delivered, report))
        del self._queues[topic]
        self._tasks.pop(topic, None)  # an eager task is not stored yet

    def _delivered(self, report: OnReport, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            self._call(report, _describe(asyncio.CancelledError()), None)
        elif (error := future.exception()) is not None:
            self._call(report, error, None)
        else:
            self._call(report, None, None if future.result() is None else AiokafkaMessage(future.result()))

    def _call(self, report: OnReport, error: BaseException | None, place: AiokafkaMessage | None) -> None:
        report(error, place)
        self.deliveries.callbacks.serve()
        self.report_called()


def _is_cancelled() -> bool:
    """Return whether the current task itself was cancelled, not only a future that the task awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _describe(error: BaseException) -> BaseException:
    cancelled = isinstance(error, asyncio.CancelledError)
    return asyncio.CancelledError("aiokafka cancelled the delivery") if cancelled else error
