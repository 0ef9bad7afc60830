"""`Observers`: calls the observers of a client, by the law of `_protocol`, so that none of them stops it."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.errors import DecodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.observing._protocol import Notice, Observer
from cloudevents_kafka.record import HeaderInput, Headers, Record, to_headers

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_log: Final = logging.getLogger("cloudevents_kafka.observing")
_METHODS: Final = [name for name in vars(Observer) if not name.startswith("_")]


class Observers:
    """The observers of a client, which are called in their order, each once.

    Raises `TypeError` for an object that has none of the methods.
    """

    def __init__(self, *observers: object) -> None:
        self.all = tuple(dict.fromkeys(observers))
        self._known: set[tuple[int, str, object]] = set()
        self._methods: dict[str, list[tuple[object, Callable[..., Any]]]] = {name: [] for name in _METHODS}
        for observer in self.all:
            found = [name for name in _METHODS if callable(getattr(observer, name, None))]
            if not found or isinstance(observer, type):
                got = f"the class {observer.__name__}" if isinstance(observer, type) else repr(observer)
                raise TypeError(f"observers must have methods of Observer, got {got}; pass an instance")
            for name in found:
                if getattr(type(observer), name, None) is not getattr(Observer, name):
                    self._methods[name].append((observer, getattr(observer, name)))

    def call(self, name: str, *arguments: object) -> None:
        """Call a method of all observers."""
        for observer, method in self._methods[name]:
            try:
                method(*arguments)
            except Exception:  # noqa: BLE001  # an observer may raise any error
                self._log(observer, name)

    def _log(self, observer: object, name: str) -> None:
        """Log the error that is handled now, once for each class of errors of a method."""
        error = sys.exception()
        kind = id(observer), name, type(error)
        if kind not in self._known:
            self._known.add(kind)
            what = f"{type(observer).__name__}.{name}"
            _log.warning("%s has failed, and further such errors are not logged", what, exc_info=error)

    @contextmanager
    def handling(self, item: Decoded | Undecodable) -> Iterator[None]:
        """Enter the context managers of all observers; an error of the block passes through."""
        entered = []
        for observer, method in self._methods["handling"]:
            try:
                manager = method(item)
                manager.__enter__()
            except Exception:  # noqa: BLE001  # see `call`
                self._log(observer, "handling")
            else:
                entered.append((observer, manager))
        error: BaseException | None = None
        try:
            yield
        except BaseException as failure:
            error = failure
            raise
        finally:
            kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
            for observer, manager in reversed(entered):
                try:
                    manager.__exit__(kind, error, trace)
                except Exception:  # noqa: BLE001  # see `call`
                    self._log(observer, "handling")
            del error  # its traceback has this frame

    def send(self, sent: Event[Any] | Record, record: Record, then: Callable[..., object]) -> Sending:
        """Return the headers of a record that is sent, and the callback for its client; see `Sending`."""
        return Sending(self, sent, record, then)

    def reading(self, read: Callable[[Record], Any], client: Any, *, pulled: bool) -> Reading:
        """Return a function that reads records as ``read``; see `Reading`."""
        return Reading(self, read, client, pulled=pulled)

    def headers(self, record: Record) -> Headers:
        """Return the headers of a record that is sent, with those of the observers."""
        headers = _Headers(record.headers)
        for observer, method in self._methods["sending"]:
            try:
                headers.replace(method(record))
            except Exception:  # noqa: BLE001  # see `call`
                self._log(observer, "sending")
        return headers

    def of_item(self, name: str, item: Decoded | Undecodable, **fields: Any) -> None:
        """Call a method of all observers for a record that was read."""
        if self._methods[name]:
            self.call(name, _notice(item, **fields))

    def of_places(self, name: str, places: Iterable[TopicPartition], client: Any, **fields: Any) -> None:
        """Call a method of all observers for partitions, but not for those that have an error."""
        if self._methods[name]:
            fields["end_of"] = _ends(client)
            notices = [
                Notice(topic=each.topic, partition=each.partition, offset=each.offset, **fields)
                for each in places
                if getattr(each, "error", None) is None
            ]
            if notices:
                self.call(name, notices)


class Sending:
    """One message: its headers, and its callback for the client, which notifies the observers once.

    ``then`` is the callback that is called after that.
    """

    __slots__ = ("_began", "_event", "_is_reported", "_observers", "_record", "_then", "headers")

    def __init__(
        self, observers: Observers, sent: Event[Any] | Record, record: Record, then: Callable[..., object]
    ) -> None:
        self._is_reported = False
        self._observers, self._record, self._then = observers, record, then
        self._event = None if isinstance(sent, Record) else sent
        self._began = time.perf_counter()
        self.headers = observers.headers(record)

    def __call__(self, error: Any, message: Any) -> None:
        """Handle the report of the client."""
        self.report(error, message)
        self._then(error, message)

    def __del__(self) -> None:
        """Note a success that the client does not report: it has freed the message without a call."""
        self.report(None, None)

    def report(self, error: Any, message: Any = None) -> None:
        """Notify the observers of the message, unless that was done."""
        if self._is_reported:
            return
        self._is_reported = True
        is_placed = error is None and message is not None
        notice = Notice(
            topic=self._record.topic,
            partition=message.partition() if is_placed else None,
            offset=message.offset() if is_placed else None,
            record=self._record,
            event=self._event,
            error=error,
            seconds=time.perf_counter() - self._began,
        )
        self._observers.call("delivered" if error is None else "failed", notice)


class Reading:
    """The function of a consumer that reads records, which notifies observers of what is returned.

    Records of one `batch` have one call.
    """

    def __init__(
        self, observers: Observers, read: Callable[[Record], Any], client: Any, *, pulled: bool
    ) -> None:
        self._observers = observers
        self._read = read
        self._pulled = pulled
        self._end_of = _ends(client)
        self._items: list[Decoded | Undecodable] = []
        self._seconds = 0.0
        self._is_batch = False

    def __call__(self, record: Record) -> Any:
        """Return the item of a record."""
        began = time.perf_counter()
        try:
            item = self._read(record)
        except DecodeError as error:
            if not self._items:  # else the batch ends before it, and it is read again
                self._add(Undecodable(error, record), began)
            raise
        self._add(item, began)
        return item

    def _add(self, item: Decoded | Undecodable, began: float) -> None:
        self._items.append(item)
        self._seconds += time.perf_counter() - began
        if not self._is_batch:
            self._notify()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Notify observers of all records of the block at its end."""
        self._is_batch = True
        try:
            yield
        finally:
            self._is_batch = False
            if self._items:
                self._notify()

    def _notify(self) -> None:
        items, self._items = self._items, []
        seconds, self._seconds = self._seconds, 0.0
        fields = {"seconds": seconds, "pulled": self._pulled, "end_of": self._end_of}
        self._observers.call("received", [_notice(item, **fields) for item in items])


class _Headers(list[tuple[str, bytes | None]]):
    """Headers of a record to which other instrumentation appends its own in the client.

    Those whose names are there by an observer are not appended.
    """

    def __init__(self, headers: Iterable[tuple[str, bytes | None]]) -> None:
        super().__init__(headers)
        self._names: set[str] = set()

    def append(self, header: tuple[str, bytes | None], /) -> None:
        """Append a header, unless an observer has set it."""
        if header[0] not in self._names:
            super().append(header)

    def replace(self, added: HeaderInput) -> None:
        """Add headers in place of those with the same names."""
        found = to_headers(added)
        for name, _ in found:
            name.encode()
            if name.startswith("ce_") or name.lower() == "content-type":
                raise ValueError(f"headers to add must not be those of the event, got {name!r}; rename it")
        names = {name for name, _ in found}
        self._names |= names
        self[:] = [header for header in self if header[0] not in names] + found


def _notice(item: Decoded | Undecodable, **fields: Any) -> Notice:
    record = item.record
    event, error = (None, item.error) if isinstance(item, Undecodable) else (item.event, None)
    fields.setdefault("error", error)
    fields |= {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    return Notice(record=record, event=event, **fields)


def _ends(client: Any) -> Callable[[str | None, int | None], int | None]:
    """Return a function that returns the end of a partition, as a client knows it without a request."""

    def end_of(topic: str | None, partition: int | None) -> int | None:
        ask = getattr(client, "get_watermark_offsets", None)
        if ask is None or topic is None or partition is None:
            return None
        from confluent_kafka import TopicPartition

        try:
            end: int = ask(TopicPartition(topic, partition), cached=True)[1]
        except Exception:  # noqa: BLE001  # the client is closed, or the partition was revoked
            return None
        return end if end >= 0 else None

    return end_of
