"""How the commands decide whether a record is a valid event with valid data."""

from __future__ import annotations

from cloudevents_kafka.binding import Decoded, Undecodable, decode
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import implies_json, to_utf8
from cloudevents_kafka.errors import BrokenData, DataError
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record

_REGISTRY_HINT = "a serializer of a schema registry wrote it; consume --schema-registry URL decodes it"


def read(record: Record, *, lenient: bool = False, by_registry: bool = False) -> Decoded | Undecodable:
    """Return the result of `decode`, or a `BrokenData` if the data does not match its content type.

    JSON that a parser cannot convert to a Python value, such as a lone surrogate, is valid. With
    ``by_registry``, data is not checked if a schema registry's serializer may have written it.
    """
    item = decode(record, lenient=lenient)
    if not isinstance(item, Decoded) or (by_registry and _is_framed(item.event)):
        return item
    error = _data_error(item.event)
    return item if error is None else Undecodable(_broken(error, item), record)


def _data_error(event: Event) -> DataError | None:
    try:
        _ = event.data
    except DataError as error:
        return None if _is_json(event) else error
    return None


def _is_json(event: Event) -> bool:
    content_type = event.datacontenttype
    if not implies_json(content_type):
        return False
    try:
        return is_json(to_utf8(event.payload or b"", content_type))
    except DataError:
        return False


def event_of(item: Decoded | Undecodable) -> Event | None:
    """Return the event of a record, even if its data is broken, or None if the record is not an event."""
    if isinstance(item, Decoded):
        return item.event
    return item.error.event if isinstance(item.error, BrokenData) else None


def _is_framed(event: Event) -> bool:
    return (event.payload or b"").startswith((b"\0", b"\1"))


def _broken(error: DataError, item: Decoded) -> BrokenData:
    """Return the error for broken data; its message says where the data is broken."""
    hint = _REGISTRY_HINT if _is_framed(item.event) else None
    broken = BrokenData(f"broken data: {error}", item.record, item.event, hint)
    broken.__cause__ = error
    return broken
