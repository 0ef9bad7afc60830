"""Records as messages for the cloudevents SDK, which does not read all that the specification allows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
from cloudevents.core.formats.json import JSONFormat

from cloudevents_kafka import DecodeError, Event, Record, from_record, to_record

JSON: Final = JSONFormat()
_TIME: Final = "2018-04-05T17:31:00.123456Z"
_LONGEST: Final = 20  # the letters of an extension's name that the SDK accepts


def message_of(record: Record) -> tuple[KafkaMessage, bool]:
    """Return the nearest message that the SDK can read, and whether it differs from the record.

    These are tried, in order: the record; its event as this library writes it, in JSON or in binary
    mode, with the key if it is a text; the same with another time and shorter names. If none of these can be
    read, the record itself is returned.
    """
    for number, message in enumerate(_messages(record)):
        with suppress(Exception):
            from_kafka(message, JSON)
            return message, number > 0
    return KafkaMessage(dict(record.headers), record.key, record.value), True  # type: ignore[arg-type]


def _messages(record: Record) -> Iterator[KafkaMessage]:
    if None not in dict(record.headers).values():
        yield KafkaMessage(dict(record.headers), record.key, record.value)  # type: ignore[arg-type]
    try:
        event = from_record(record, lenient=True)
    except DecodeError:  # an older checkout, which is timed without the SDK
        return
    key = record.key if record.key and _is_text(record.key) else None
    binary = any(name.lower().startswith(("ce_", "ce-")) for name, _ in record.headers)
    for simplify in (lambda event: event, _simplify):
        copy = to_record(simplify(event), mode="binary" if binary else "structured", key=key)
        yield KafkaMessage(dict(copy.headers), copy.key, copy.value)  # type: ignore[arg-type]


def _simplify(event: Event) -> Event:
    """Return an event with a time and with names that the SDK accepts."""
    long = {name: event[name] for name in event.attributes if len(name) > _LONGEST}
    shorter = {f"x{number}{name}"[:_LONGEST]: value for number, (name, value) in enumerate(long.items())}
    return event.replace(**dict.fromkeys(long), **shorter, time=_TIME if event.time else None)


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
