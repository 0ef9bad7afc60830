"""Events of the official SDK, checked and written in binary mode in one pass.

The SDK checks some rules in its constructors, but anyone can change the attributes of its
events later, so all rules are checked here. A function that is compiled for the names and types
of the attributes joins their texts for the check, and writes the headers.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from cloudevents_kafka._sdk_parts import parts_of
from cloudevents_kafka.attributes.extension_types import ExtensionTable, current
from cloudevents_kafka.attributes.fast_validation import are_valid_texts
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import from_datetime, utc_text
from cloudevents_kafka.attributes.types import INTEGER_RANGE, SPECVERSION
from cloudevents_kafka.binding._headers import CONTENT_TYPE, IMPLIED_TYPE, header_of
from cloudevents_kafka.codecs.payload import DataKind, to_payload
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.event import Event, event_of, raw_parts, unchecked_event
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH
from cloudevents_kafka.record import Headers

_MAX_WRITERS: Final = 256
_MAX_NAMES: Final = 64

_BYTES_OF: Final = {
    str: "{}.encode()",
    int: "b'%d' % {}",
    bool: "b'true' if {} else b'false'",
    bytes: "b64encode({})",
}
"""The canonical text of a value in UTF-8, in the source of a writer."""
_ONLY: Final = {"specversion": repr(SPECVERSION.encode())}  # of a valid event
_SCOPE: Final = {"INTEGER_RANGE": INTEGER_RANGE, "b64encode": base64.b64encode}

Written = tuple[Headers, bytes | None]
"""The headers and the value of an event in binary mode."""

Writer = Callable[..., tuple[str, Headers] | None]
"""Return the texts of attributes together, and the headers; None if the types differ."""


def take_event(source: Any) -> tuple[Event, Written | None]:
    """Return the event that `Event.of` returns, and what `encode_binary` returns for it or None.

    Raises what `Event.of` raises.
    """
    if isinstance(source, Event):
        return source, None
    attributes, data = parts_of(source)
    names = tuple(attributes)
    table = current.table
    write = table.writers.get(names)
    if write is not None:
        taken = _take(attributes, data, write)
        if taken is not None:
            return taken
    event = event_of(attributes, data)
    if write is not None:
        table.writers[names] = None  # the types vary, and compiling takes time
    elif len(table.writers) < _MAX_WRITERS and names not in table.writers and _is_small(names):
        table.writers[names] = _compile(names, event, table)
    return event, None


def _is_small(names: tuple[str, ...]) -> bool:
    return len(names) <= _MAX_NAMES and max(map(len, names)) <= MAX_KEY_LENGTH


def _take(attributes: dict[str, Any], data: Any, write: Writer) -> tuple[Event, Written] | None:
    """Return an event and its form in binary mode, or None if it is invalid or of other types."""
    time = attributes.get("time")
    valid_time = False
    try:
        if type(time) is datetime:
            attributes["time"] = utc_text(time) if time.tzinfo is UTC else from_datetime(time)
            valid_time = True
        written = write(*attributes.values())
        if written is None:
            return None
        joined, headers = written
        content_type = attributes.get("datacontenttype")
        if content_type is not None:
            media = media_type(content_type)
            if media.cloudevents or not media.valid:  # K-20: `encode_binary` refuses the first
                return None
        if not are_valid_texts(attributes, joined, valid_time, True):
            return None
        payload, kind = to_payload(data, content_type, attributes)
    except (ValueError, DataError):  # a time without an offset; data that cannot be written
        return None
    if content_type is None and kind is DataKind.JSON:  # R-10, as in `encode_binary`
        headers.append((CONTENT_TYPE, IMPLIED_TYPE))
    return unchecked_event(attributes, payload, kind), (headers, payload)


def _compile(names: tuple[str, ...], event: Event, table: ExtensionTable) -> Writer | None:
    """Return the writer for names and types of the attributes of a valid event, or None.

    Attributes that were null, or have rules of extensions, have no writer.
    """
    attributes, _ = raw_parts(event)
    if tuple(attributes) != names or not table.text_names.issuperset(names):
        return None
    values = {f"value{number}": type(value) for number, value in enumerate(attributes.values())}
    texts = [value for value, kind in values.items() if kind is str]
    types = [f"type({value}) is {kind.__name__}" for value, kind in values.items() if kind is not str]
    ranges = [f"{value} in INTEGER_RANGE" for value, kind in values.items() if kind is int]
    headers = [
        f"({header_of(name)!r}, {_ONLY.get(name) or _BYTES_OF[kind].format(value)})"
        for name, (value, kind) in zip(names, values.items(), strict=True)
    ]
    conditions = " and ".join([*types, *ranges, f"{' is '.join(f'type({text})' for text in texts)} is str"])
    joined = "".join(f"{{{text}}}" for text in texts)
    source = f"lambda {', '.join(values)}: (f'{joined}', [{', '.join(headers)}]) if {conditions} else None"
    write: Writer = eval(source, dict(_SCOPE))  # noqa: S307  # the names have letters and digits only
    return write
