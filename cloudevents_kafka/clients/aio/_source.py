"""`Source`: fetches messages of a Kafka consumer in batches, for any number of waiting tasks.

`PolledSource` fetches messages with confluent-kafka's ``Consumer``, in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._errors import explain_unread
from cloudevents_kafka.clients._gathered import Readable, check_committed
from cloudevents_kafka.clients._protocols import Consumer, PolledMessage, check_max_records
from cloudevents_kafka.clients._settings import check_begun
from cloudevents_kafka.clients._steps import Ask
from cloudevents_kafka.clients.aio._call_thread import CallThread

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from cloudevents_kafka.clients.consumer import EventConsumer

FETCH_SECONDS: Final = 0.2
"""The longest time of a fetch, in seconds; `commit`, `seek` and `close` may wait until a fetch ends."""
_CLOSE_SECONDS: Final = 20.0
_PAUSE_SECONDS: Final = 0.005  # between calls of a client that does not wait, such as a fake
_log: Final = logging.getLogger("cloudevents_kafka.consumer")


class Source(ABC):
    """Fetches messages for all tasks that wait for a message; only one fetch runs at a time.

    No task owns a fetch, so no message is lost if a task is cancelled: fetched messages stay in the attribute
    ``waiting`` until a task asks for a message. No message is fetched before a task asks for a message, so
    the client's position is at most one batch ahead of the returned messages.
    """

    def __init__(self, events: Readable[Any], client: Any, max_records: int) -> None:
        check_max_records(max_records)
        self.max_records = max_records
        self.client = client
        self.events = events
        self.gathered = events._gathered
        self.gathered.ask_ends_by(self)
        self.waiting = self.gathered.waiting
        self.hand_over: Callable[..., Awaitable[None]] | None = None
        """A function that is called with partitions that were revoked or lost; None if no run reads."""
        self._fetching: asyncio.Future[Sequence[PolledMessage]] | None = None
        self._failure: BaseException | None = None

    def begin(self, count: int = 0, seconds: float = 0) -> None:
        """Begin a fetch, unless a fetch is running or has failed; for the arguments, see `wait`."""
        if self._fetching is None and self._failure is None:
            self._fetching = asyncio.ensure_future(self.fetch(count or self.max_records, seconds))
            self._fetching.add_done_callback(self._fetched)

    async def wait(self, timeout: float | None, count: int = 0, seconds: float = 0) -> None:
        """Wait up to ``timeout`` seconds until the current fetch has ended; raise the error of the client.

        If this call begins a fetch, the fetch ends when the next message arrives. If ``seconds`` is not 0,
        the fetch ends when it has ``count`` messages, or after this number of seconds.
        """
        self.begin(count, seconds)
        if self._fetching is not None:
            await asyncio.wait((self._fetching,), timeout=timeout)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _fetched(self, fetch: asyncio.Future[Sequence[PolledMessage]]) -> None:
        self._fetching = None
        if fetch.cancelled():
            return
        self._failure = fetch.exception()
        if self._failure is None:
            self.waiting += fetch.result()

    @abstractmethod
    def fetch(self, count: int, seconds: float) -> asyncio.Future[Sequence[PolledMessage]]:
        """Begin to fetch up to ``count`` messages in a short time, and return the future of these messages.

        The future contains all messages that have already arrived; if none has arrived, it contains the next
        message. If ``seconds`` is not 0, the future contains the messages that arrive within this number of
        seconds.
        """

    def drop_moved(self) -> None:  # noqa: B027  # nothing to do if partitions move only during a fetch
        """Drop fetched messages whose partitions were revoked, or assigned again, after the fetch."""

    @abstractmethod
    def get_watermark_offsets(self, place: TopicPartition, *, cached: bool) -> tuple[int, int]:
        """Return (0, end offset) for a partition, without waiting; the end offset is -1 if it is unknown."""

    @abstractmethod
    def position(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the offset of each partition's next record, without waiting; -1 or less means unknown."""

    @abstractmethod
    async def answer(self, ask: Ask) -> Any:
        """Make a client call of a run, and return its result; raise client errors as ``KafkaException``."""

    @abstractmethod
    async def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit offsets, even if the current task is cancelled; raise `ConsumeError` if the commit fails."""

    @abstractmethod
    async def seek(self, place: TopicPartition) -> None:
        """Continue to read a partition at another offset, after a running fetch has ended."""

    @abstractmethod
    async def close(self) -> None:
        """Close the client so that its group reads the messages in ``waiting`` again."""

    def release(self) -> None:  # noqa: B027  # the source for aiokafka has no threads
        """End the threads of this source; if the client is called again, new threads are started."""


class PolledSource(Source):
    """Makes all client calls in one thread, which passes batches of fetched messages to the event loop."""

    def __init__(self, events: EventConsumer[Any, Any], client: Any, max_records: int) -> None:
        super().__init__(events, client, max_records)
        self._events = events
        events.hand_over = self._hand_over
        self._thread = CallThread("AsyncEventConsumer")
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop of the last fetch
        self._ends: dict[tuple[str | None, int | None], int] = {}

    def fetch(self, count: int, seconds: float) -> asyncio.Future[Sequence[PolledMessage]]:
        """Let the thread fetch messages, and return the future of these messages."""
        self._loop = asyncio.get_running_loop()
        return self._thread.call(partial(self._fetch, count, seconds), nests=False)

    def _fetch(self, count: int, seconds: float) -> Sequence[PolledMessage]:
        try:
            messages = _fetch(self.client, count, seconds)
        except SystemError as error:
            raise explain_unread(error) from error
        self._events.note_poll(self.client, messages)
        if self.gathered.observers is not None:
            self._ends |= _ends_of(self.client, messages)
        return messages

    def _fetched(self, fetch: asyncio.Future[Sequence[PolledMessage]]) -> None:
        super()._fetched(fetch)
        self._failure = self._failure or self._events.raised.take()

    def get_watermark_offsets(self, place: TopicPartition, *, cached: bool) -> tuple[int, int]:  # noqa: ARG002
        """Return (0, end offset) for a partition at the last fetch, because a client call may wait."""
        return 0, self._ends.get((place.topic, place.partition), -1)

    def position(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the client's position in each partition of ``places``."""
        found: list[TopicPartition] = self.client.position(places)
        return found

    def _hand_over(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        """Drop fetched records of revoked partitions, and let a run commit; the client's poll calls this."""
        loop = self._loop
        if loop is None or loop.is_closed() or not self._thread.is_current():  # a processor's thread polls
            self.gathered.discard(partitions)
        else:
            self._thread.wait(self._revoke(partitions, lost=lost), loop)

    async def _revoke(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        self.gathered.discard(partitions)
        if self.hand_over is not None:
            await self.hand_over(partitions, lost=lost)

    async def answer(self, ask: Ask) -> Any:
        """Make a client call of a run in the source's thread, and return the result of the call."""
        if ask.name == "sleep":
            return await asyncio.sleep(*ask.arguments)
        return await self._thread.call(partial(ask.call, self.client))

    async def commit(self, offsets: list[TopicPartition]) -> None:
        """Commit offsets in the source's thread, after a running fetch has ended."""
        commit = partial(self.client.commit, offsets=offsets, asynchronous=False)
        check_committed(await asyncio.shield(self._thread.call(commit)) or ())

    async def seek(self, place: TopicPartition) -> None:
        """Seek in the source's thread, between two fetches."""
        await self._thread.call(partial(self.client.seek, place))

    async def close(self) -> None:
        """Close the client after the pending calls in the source's thread."""
        if self._fetching is not None:  # after that, its messages are in ``waiting``
            await asyncio.wait((self._fetching,), timeout=_CLOSE_SECONDS)
        closing = self._thread.call(self._events.close, nests=False)
        self._thread.end()
        await end_in_time(closing)

    def release(self) -> None:
        """End the source's thread after its pending calls."""
        self._thread.end()


async def end_in_time(closing: asyncio.Future[None]) -> None:
    """Wait until a client is closed, but only for a limited time, because the client may hang."""
    await asyncio.wait((closing,), timeout=_CLOSE_SECONDS)
    if closing.done():
        closing.result()
    else:
        _log.warning(
            "the client is still closing after %.0f s; the program continues without the client",
            _CLOSE_SECONDS,
        )


def _fetch(client: Consumer, count: int, seconds: float) -> Sequence[PolledMessage]:
    """Return the messages of one client call; a second call could revoke the messages' partitions."""
    check_begun(client)
    began = time.monotonic()
    messages: Sequence[PolledMessage] = client.consume(count, seconds)  # waits for ``count`` messages
    if not messages and not seconds:
        message = client.poll(FETCH_SECONDS)
        messages = () if message is None else (message,)
    if not messages and time.monotonic() - began < _PAUSE_SECONDS:
        time.sleep(_PAUSE_SECONDS)
    return messages


def _ends_of(client: Any, messages: Sequence[PolledMessage]) -> dict[tuple[str | None, int | None], int]:
    """Return the end offsets of the messages' partitions that the client knows without a request."""
    from confluent_kafka import KafkaException, TopicPartition

    names = {(message.topic(), message.partition()) for message in messages if message.error() is None}
    ends = {}
    for topic, partition in names:
        try:
            place = TopicPartition(topic or "", partition or 0)
            ends[topic, partition] = client.get_watermark_offsets(place, cached=True)[1]
        except (AttributeError, KafkaException, RuntimeError):  # the client has no such method, or is closed
            continue
    return ends
