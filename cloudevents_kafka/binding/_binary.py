"""Binary content mode: attributes in ``ce_`` headers, the data as the record's value.

Header values are the canonical texts of attributes in UTF-8, without quotes or percent-encoding.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import ExtensionTable
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import AttributeValue, canonical_text
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.binding._headers import (
    CONTENT_TYPE,
    CONTENT_TYPE_COPY,
    attribute_of,
    decode_text,
    exact_name,
    header_names,
    header_of,
    name_in,
)
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import EncodeError, InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event, binary_parts, unchecked_event
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.record import Headers, Record

_JSON: Final = b"application/json"
_NOT_TEXT: Final = "?"  # replaces the name of an attribute that is invalid or not a text


def read_text_headers(headers: Headers, table: ExtensionTable) -> dict[str, Any] | None:
    """Return the attributes in headers if these are known and may be any text, or None.

    `read_headers` reads others: a header of the event is null or not any text, or breaks a rule.
    """
    attributes: dict[str, Any] = {}
    others = 0
    names = table.header_names
    try:
        for header, value in headers:
            name = names[header]
            if name is None:
                others += 1
            else:
                attributes[name] = value.decode()  # type: ignore[union-attr]  # None raises AttributeError
    except (KeyError, AttributeError, UnicodeDecodeError):
        return None
    if len(attributes) + others != len(headers) or _NOT_TEXT in attributes:
        return None
    if CONTENT_TYPE_COPY in attributes and attributes.pop(CONTENT_TYPE_COPY) != attributes.get(
        "datacontenttype"
    ):
        return None
    return attributes


def read_headers(headers: Headers, table: ExtensionTable) -> dict[str, Any] | None:
    """Return the texts of the attributes in headers, or None if one of the event's headers breaks a rule.

    `decode_binary` finds the rule: a header is not UTF-8 or repeated, or its name is invalid, or
    ce_datacontenttype is not a copy of content-type.
    """
    names = table.header_names
    attributes: dict[str, Any] = {}
    copies: list[bytes] = []
    for header, value in headers:
        name = names[header] if header in names else _add_name(header, table)
        if name is None or value is None:
            continue
        if header == CONTENT_TYPE_COPY:
            copies.append(value)
            continue
        if name is _NOT_TEXT:
            name = attribute_of(header)
            if name is None:
                continue
        if not name or name in attributes:
            return None
        try:
            attributes[name] = value.decode()
        except (AttributeError, UnicodeDecodeError):  # the value is not bytes, or not UTF-8
            return None
    return attributes if not copies or _is_copy(copies, attributes) else None


def _add_name(header: str, table: ExtensionTable) -> str | None:
    """Return the name in a header, `_NOT_TEXT` if it is not that of an attribute of any text; cache it.

    That is also the name of a header which lenient reading takes for one of the event. A copy of
    the content-type keeps the name of its header.
    """
    if header == CONTENT_TYPE_COPY:
        return remember(table.header_names, header, header)
    name = attribute_of(header)
    is_text = exact_name(header) is None if name is None else name != "" and name not in table.constrained
    return remember(table.header_names, header, name if is_text else _NOT_TEXT)


def _is_copy(values: list[bytes], attributes: dict[str, Any]) -> bool:
    """Return whether ce_datacontenttype occurs once and is a copy of content-type (K-04)."""
    content_type = attributes.get("datacontenttype")
    return len(values) == 1 and content_type is not None and values[0] == content_type.encode()


def decode_binary(record: Record) -> Event:
    """Return the event of a record in binary mode; raise `InvalidEvent` if it has problems."""
    texts, problems = _read_headers(record.headers)
    unreadable = [attribute_of(str(problem.attribute)) for problem in problems]
    attributes, problems = validate(texts, problems, unreadable)
    if problems:
        raise InvalidEvent(problems)
    # K-03: "placed into the Kafka message's value section as-is"
    # K-07: "no data is a Kafka message with no value"
    return unchecked_event(attributes, record.value)


def _read_headers(headers: Headers) -> tuple[dict[str, AttributeValue], list[Problem]]:
    """Return the texts of attributes, also of those with invalid names, and the problems of headers."""
    attributes: dict[str, AttributeValue] = {}
    problems: list[Problem] = []
    copies: list[str] = []
    counts: Counter[str] = Counter()
    for header, value in headers:
        if value is None or attribute_of(header) is None:
            continue
        counts[header] += 1
        text = decode_text(header, value, problems)
        if text is not None and header == CONTENT_TYPE_COPY:
            copies.append(text)
        elif text is not None:
            attributes[name_in(header)] = text  # of repeated headers the last, as in JSON
    problems += [  # N-05: "MUST only appear at most once"
        Problem(name_in(header), f"header {header} occurs more than once", "N-05")
        for header, count in counts.items()
        if count > 1
    ]
    # K-04: "MUST be mapped directly"; a copy that agrees does no harm.
    rule = "must be in the content-type header, not in ce_datacontenttype"
    others = [text for text in copies if text != attributes.get("datacontenttype")]
    problems += [Problem("datacontenttype", rule, "K-04", preview(text)) for text in others[:1]]
    return attributes, problems


def encode_binary(event: Event) -> tuple[Headers, bytes | None]:
    """Return the headers of an event, in the order of its attributes, and its value.

    Raises `EncodeError` if readers would take the datacontenttype for that of structured mode.
    """
    attributes, payload, kind = binary_parts(event)
    names = header_names
    try:
        headers: Headers = [
            (names[name], value.encode() if type(value) is str else canonical_text(value).encode())
            for name, value in attributes.items()
        ]
    except KeyError:  # a name is not cached
        headers = [(header_of(name), canonical_text(value).encode()) for name, value in attributes.items()]
    content_type = attributes.get("datacontenttype")
    if type(content_type) is not str:
        if kind is DataKind.JSON:  # "SHOULD be set explicitly to the implied `datacontenttype`"
            headers.append((CONTENT_TYPE, _JSON))
    elif media_type(content_type).cloudevents:  # K-20: if "prefixed with the CloudEvents media type"
        raise EncodeError(
            "datacontenttype must not start with application/cloudevents in binary mode "
            f"(K-20, Kafka binding 3), got {preview(content_type)}; use structured mode"
        )
    return headers, payload
