"""`Observers`: calls a client's observers as `_protocol` says; their errors do not stop the client."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import force_setattr

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients.observing._protocol import Notice, Observer
from cloudevents_kafka.errors import DecodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.record import Headers, Record, to_headers

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_TRACE: Final = frozenset(("traceparent", "tracestate"))
"""The headers of a trace. A ``tracestate`` belongs to the ``traceparent`` with which it was written."""
_log: Final = logging.getLogger("cloudevents_kafka.clients.observing")


class Observers:
    """The observers of a client, which are called in the order in which they were passed.

    Raises `TypeError` for an object that is not an observer.
    """

    def __init__(self, *observers: object) -> None:
        self.owner: dict[str, Any] = {}
        """The group and the number of the consumer, which each `Notice` about its records contains."""
        self.all = tuple({id(observer): observer for observer in observers}.values())
        self._known: set[object] = set()  # kinds of errors that were logged
        names = [name for name in vars(Observer) if not name.startswith("_")]
        self._by_method = {name: [one for one in self.all if _has(one, name)] for name in names}
        for one in self.all:
            known = isinstance(one, Observer) or any(_has(one, name) for name in names)
            if not known or isinstance(one, type):
                raise TypeError(f"observers must have methods of Observer, got {one!r}; pass an instance")
            methods = {f"{type(one).__name__}.{name}": getattr(one, name, None) for name in names}
            check_callbacks(**methods)

    def see(self, *names: str) -> bool:
        """Return whether any observer implements one of these methods."""
        return any(self._by_method[name] for name in names)

    def _each(self, name: str) -> Iterator[tuple[Any, Callable[..., Any]]]:
        return ((observer, getattr(observer, name)) for observer in self._by_method[name])

    @contextmanager
    def _guard(self, observer: object, name: str) -> Iterator[None]:
        """Log an error that an observer raises in the block, but only once for each class of errors."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # an observer may raise any error
            kind = (id(observer), name, type(error))
            if kind not in self._known:
                self._known.add(kind)
                # As a text: with the traceback, a log would keep the callers' frames, and so reports.
                where, text = f"{type(observer).__name__}.{name}", "".join(format_exception(error))
                _log.warning("%s has failed; such errors are not logged again: %s", where, text)

    def call(self, name: str, *arguments: object) -> None:
        """Call a method of all observers that implement this method."""
        for observer, method in self._each(name):
            with self._guard(observer, name):
                method(*arguments)

    def handling(self, item: Decoded | Undecodable) -> ExitStack:
        """Enter the context managers that the observers return; return a stack that exits them."""
        stack = ExitStack()
        for observer, method in self._each("handling"):
            with self._guard(observer, "handling"):
                manager = method(item)
                manager.__enter__()
                stack.push(partial(self._leave, observer, manager))
        return stack

    def _leave(self, observer: object, manager: Any, *error: object) -> None:
        with self._guard(observer, "handling"):
            manager.__exit__(*error)

    def headers(self, record: Record) -> Headers:
        """Add the observers' headers to a record that will be sent; return all headers of the record."""
        headers = _Headers(record.headers)
        force_setattr(record, "headers", headers)
        for observer, method in self._each("sending"):
            with self._guard(observer, "sending"):
                headers.replace(to_headers(method(record)))
        return headers

    def send(self, sent: Event[Any] | Record, record: Record) -> Sending:
        """Return a `Sending`, with the headers to send and a method to call with the delivery report."""
        return Sending(self, sent, record)

    def reading(self, read: Callable[[Record], Any], client: Any) -> Reading:
        """Return a function that reads records with ``read`` and calls the observers."""
        return Reading(self, read, client)

    def of_item(self, name: str, item: Decoded | Undecodable, **fields: Any) -> None:
        """Call a method of the observers with a record that was read."""
        if self.see(name):
            self.call(name, _of_item(item, **self.owner, **fields))

    def of_places(
        self, name: str, places: Iterable[TopicPartition], client: Any, began: float | None = None
    ) -> None:
        """Call a method of the observers with partitions and offsets; skip partitions with an error."""
        notices = [
            Notice(
                topic=place.topic,
                **self.owner,
                partition=place.partition,
                offset=place.offset,
                end=_end_of(client, place.topic, place.partition),
                seconds=None if began is None else time.monotonic() - began,
            )
            for place in places
            if self.see(name) and getattr(place, "error", None) is None
        ]
        if notices:
            self.call(name, notices)


class Sending:
    """Headers for a message to send, and a method that calls the observers with the delivery report."""

    def __init__(self, observers: Observers, sent: Event[Any] | Record, record: Record) -> None:
        self._observers, self._record = observers, record
        self._event = None if isinstance(sent, Record) else sent
        self._began = time.monotonic()
        self.headers = observers.headers(record)

    def report(self, error: Any, place: tuple[int | None, int | None] | None = None) -> None:
        """Call the observers with the message's error, or with the message's partition and offset."""
        fields: dict[str, Any] = {"event": self._event, "seconds": time.monotonic() - self._began}
        if error is None and place is not None:
            fields |= {"partition": place[0], "offset": place[1]}
        notice = _of_record(self._record, error, **fields)
        self._observers.call("delivered" if error is None else "failed", notice)


class Reading:
    """Reads records, and calls the observers once for all records that are read in a `batch` block."""

    def __init__(self, observers: Observers, read: Callable[[Record], Any], client: Any) -> None:
        self._observers, self._read, self._client = observers, read, client
        self._items: list[Decoded | Undecodable] = []
        self._is_open = False

    def __call__(self, record: Record) -> Any:
        """Return the item, such as a `Decoded`, that the consumer returns for a record."""
        if not self._is_open:
            with self.batch():
                return self(record)
        try:
            self._items.append(item := self._read(record))
        except DecodeError as error:
            if not self._items:  # else the batch ends before this record, which is read again
                self._items.append(Undecodable(error, record))
            raise
        return item

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Call the observers' methods for read records at the end of the block. Yields once."""
        self._is_open, began = True, time.monotonic()
        try:
            yield
        finally:
            items, self._items, self._is_open = self._items, [], False
            if items:
                fields = {"seconds": time.monotonic() - began, "client": self._client} | self._observers.owner
                self._observers.call("received", [_of_item(item, **fields) for item in items])


class _Headers(list[tuple[str, bytes | None]]):
    """A list of headers: other instrumentation may add headers, but not replace headers of observers."""

    _names: frozenset[str] = frozenset()

    def append(self, header: tuple[str, bytes | None], /) -> None:
        """Append a header, unless an observer has added a header with the same name."""
        if header[0] not in self._names:
            super().append(header)

    def replace(self, added: Headers) -> None:
        """Add headers, and remove existing headers with the same names.

        A ``traceparent`` also removes each existing ``tracestate``.
        """
        names = frozenset(name for name, _ in added)
        for name in names:
            if name.encode().startswith(b"ce_") or name.lower() == "content-type":
                raise ValueError(f"an observer must not add headers of an event, got {name!r}; rename it")
        if "traceparent" in names:
            names |= _TRACE
        self[:] = [*(header for header in self if header[0] not in names), *added]
        self._names |= names


def _has(observer: object, name: str) -> bool:
    """Return whether an observer has its own version of a method of `Observer`."""
    method = getattr(observer, name, None)
    return callable(method) and getattr(method, "__func__", None) is not getattr(Observer, name)


def _of_item(item: Decoded | Undecodable, error: Any = None, client: Any = None, **fields: Any) -> Notice:
    event, own = (None, item.error) if isinstance(item, Undecodable) else (item.event, None)
    end = None if client is None else _end_of(client, item.record.topic, item.record.partition)
    return _of_record(item.record, error or own, event=event, end=end, **fields)


def _of_record(record: Record, error: Any, **fields: Any) -> Notice:
    place: dict[str, Any] = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    name = "" if error is None else type(error).__name__
    if isinstance(error, DecodeError):
        name = error.verdict
        fields |= {"verdict": name, "clause": next(iter(error.clauses), None)}
    elif callable(of_client := getattr(error, "name", None)):
        name = str(of_client())
    return Notice(
        record=record,
        size=record.wire_size(),
        value_size=len(record.value or b""),
        error=error,
        error_name=name,
        **{**place, **fields},
    )


def _end_of(client: Any, topic: str | None, partition: int | None) -> int | None:
    """Return the end offset of a partition if the client knows the offset without a request, else None."""
    from confluent_kafka import TopicPartition

    try:
        end: int = client.get_watermark_offsets(TopicPartition(topic or "", partition or 0), cached=True)[1]
    except Exception:  # noqa: BLE001  # the client has no such method, is closed, or has not got the partition
        return None
    return end if end >= 0 else None
