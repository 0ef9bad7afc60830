"""Events of 1, 10, 100 and 1,000 parts: the work for each part stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from _shapes import HEAD, ITEM, PLAIN, dense, envelope, in_json, spaced

from cloudevents_kafka import Event, Record, from_record, to_record

Work = Callable[[], object]

COUNTS: Final = (1, 10, 100, 1000)


def growth() -> Iterator[tuple[str, list[Work]]]:
    """Yield the name of each kind of part and the works for each count."""
    for name, make in KINDS.items():
        yield name, [make(count) for count in COUNTS]


def _extensions(count: int) -> dict[str, Any]:
    return {f"extension{number}": f"value {number}" for number in range(count)}


def _headers(count: int, prefix: str) -> list[tuple[str, bytes | None]]:
    return [(f"{prefix}{name}", value.encode()) for name, value in _extensions(count).items()]


def _read(record: Record) -> Work:
    return lambda: from_record(record)


def _write(event: Event, mode: Any) -> Work:
    return lambda: to_record(event, mode=mode)


def _make(count: int) -> Work:
    arguments = {**HEAD, **_extensions(count)}
    return lambda: to_record(Event(**arguments))


def _with_extensions(count: int) -> Event:
    return Event(**HEAD, **_extensions(count))


def _binary(headers: list[tuple[str, bytes | None]]) -> Work:
    return _read(Record(headers=[*PLAIN.items(), *headers]))


KINDS: Final[dict[str, Callable[[int], Work]]] = {
    "JSON read: extensions": lambda n: _read(in_json(dense(envelope(**_extensions(n))))),
    "JSON read: KB of data, dense": lambda n: _read(in_json(dense(envelope([ITEM] * (n * 14))))),
    "JSON read: KB of data, blanks": lambda n: _read(in_json(spaced(envelope([ITEM] * (n * 12))))),
    "JSON read: KB of text": lambda n: _read(in_json(spaced(_text(n)))),
    "binary read: extensions": lambda n: _binary(_headers(n, "ce_")),
    "binary read: foreign headers": lambda n: _binary(_headers(n, "x-")),
    "binary read: KB of data": lambda n: _read(Record(headers=[*PLAIN.items()], value=b"x" * (n * 1024))),
    "binary written: extensions": lambda n: _write(_with_extensions(n), "binary"),
    "structured written: extensions": lambda n: _write(_with_extensions(n), "structured"),
    "structured written: KB of data": lambda n: _write(Event(**HEAD, data=[ITEM] * (n * 14)), "structured"),
    "made and written: extensions": _make,
}


def _text(count: int) -> dict[str, Any]:
    return envelope("text " * (count * 205), datacontenttype="text/plain")
