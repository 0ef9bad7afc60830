"""Binary content mode: attributes are ``ce_`` headers, and the data is the record's value.

Each header value is the canonical text of an attribute in UTF-8, without quotes or percent-encoding.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka.attributes.extension_checks import Check
from cloudevents_kafka.attributes.extension_types import ExtensionTable
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import AttributeValue, canonical_text
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.binding._headers import (
    CONTENT_TYPE,
    CONTENT_TYPE_COPY,
    IMPLIED_TYPE,
    attribute_of,
    decode_text,
    exact_name,
    header_names,
    header_of,
    name_in,
    preview_all,
)
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import EncodeError, InvalidEvent, Problem
from cloudevents_kafka.event import Event, binary_parts, unchecked_event
from cloudevents_kafka.primitives.bounded import remember, remember_text
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.record import Headers, Record

HeadersRead = tuple[dict[str, Any], list[Check] | None]
"""The attributes, and a list of functions that check them; the list is None if no attribute has rules."""

_MISSPELLED: Final = "?"
_UNKNOWN: Final = "??"
_is_copy: Final[Check] = bool  # marks ce_datacontenttype, which `_remove_copy` checks
_misspelled: Final[set[str]] = set()
"""A cache of the header names that nearly match a header name of the Kafka binding."""


def read_headers(headers: Headers, table: ExtensionTable, lenient: bool) -> HeadersRead | None:  # noqa: FBT001
    """Return the texts of the attributes in headers, and the checks of attributes that have rules.

    The result is None if a header that belongs to the event breaks a rule: its value is not UTF-8, the header
    is repeated, its name is invalid, or the header ce_datacontenttype is not a copy of content-type. If the
    result is None, the function `decode_binary` finds the problems of the headers. With ``lenient``, a header
    also breaks a rule if its name nearly matches a header name of the Kafka binding.
    """
    attributes: dict[str, Any] = {}
    checks: list[Check] | None = None
    others = 0
    names = table.header_names
    try:
        for header, value in headers:
            name = names[header]
            if value is None:
                others += 1
            elif name is not None:
                attributes[name] = value.decode()
            elif header in table.header_checks:
                name, check = table.header_checks[header]
                attributes[name] = value.decode()
                checks = checks or []
                checks.append(check)
            else:
                others += 1
    except KeyError:  # a name is not cached
        return _read_uncached(headers, table, lenient=lenient)
    except (AttributeError, UnicodeDecodeError):  # the value is not bytes, or not UTF-8
        return None
    if len(attributes) + others != len(headers):
        return None
    if checks is not None and not _remove_copy(attributes):
        return None
    return attributes, checks


def _read_uncached(headers: Headers, table: ExtensionTable, *, lenient: bool) -> HeadersRead | None:
    """Return the attributes in headers, and the checks of these attributes; cache the header names."""
    attributes: dict[str, Any] = {}
    checks: list[Check] = []
    names = table.header_names
    for header, value in headers:
        name = names.get(header, _UNKNOWN)  # in one step, as another thread may empty the cache
        if name is _UNKNOWN:
            name = _add_name(header, table)
        if value is None:
            continue
        if name is None and header in table.header_checks:
            name, check = table.header_checks[header]
            checks.append(check)
        elif name is _MISSPELLED and lenient:
            return None
        elif name is None or name is _MISSPELLED:
            continue
        if name == "" or name in attributes:
            return None
        try:
            attributes[name] = value.decode()
        except (AttributeError, UnicodeDecodeError):
            return None
    return (attributes, checks) if _remove_copy(attributes) else None


def _remove_copy(attributes: dict[str, Any]) -> bool:
    """Remove the header ce_datacontenttype; return whether this header obeys the rule K-04.

    According to this rule, ce_datacontenttype must be absent, or must have the same value as content-type.
    """
    if CONTENT_TYPE_COPY not in attributes:
        return True
    copy: str = attributes.pop(CONTENT_TYPE_COPY)
    return copy == attributes.get("datacontenttype")


def _add_name(header: str, table: ExtensionTable) -> str | None:
    """Return the attribute that a header carries, or None if the attribute has rules; cache the name.

    The result is ``""`` for an invalid attribute name, `_MISSPELLED` for a name that nearly matches a header
    name of the Kafka binding, and None for a header that does not belong to the event.
    """
    if header in _misspelled:
        return _MISSPELLED
    name = attribute_of(header)
    if header == CONTENT_TYPE_COPY:
        table.header_checks[header] = header, _is_copy
    elif name == "":
        return name
    elif name is not None and name in table.checks:
        table.header_checks[header] = name, table.checks[name]
    elif name is None and exact_name(header) is not None:
        remember_text(_misspelled, header)
        return _MISSPELLED
    else:
        return remember(table.header_names, header, name)
    return remember(table.header_names, header, None)


def decode_binary(record: Record) -> Event:
    """Return the event in a record in binary mode; raise `InvalidEvent` if the record has problems."""
    texts, problems = _read_headers(record.headers)
    unreadable = [attribute_of(str(problem.attribute)) for problem in problems]
    attributes, problems = validate(texts, problems, unreadable)
    if problems:
        raise InvalidEvent(problems)
    # K-03: "placed into the Kafka message's value section as-is"
    # K-07: "no data is a Kafka message with no value"
    return unchecked_event(attributes, record.value)


def _read_headers(headers: Headers) -> tuple[dict[str, AttributeValue], list[Problem]]:
    """Return the texts of all attributes, even of those with invalid names, and the headers' problems."""
    attributes: dict[str, AttributeValue] = {}
    problems: list[Problem] = []
    copies: list[str] = []
    found: dict[str, list[bytes]] = {}
    for header, value in headers:
        if value is None or attribute_of(header) is None:
            continue
        found.setdefault(header, []).append(value)
        text = decode_text(header, value, problems)
        if text is not None and header == CONTENT_TYPE_COPY:
            copies.append(text)
        elif text is not None:
            attributes[name_in(header)] = text  # the last of repeated headers wins, as in JSON
    problems += [  # N-05: "MUST only appear at most once"
        Problem(name_in(header), f"header {header} occurs more than once", "N-05", preview_all(values))
        for header, values in found.items()
        if len(values) > 1
    ]
    # K-04: "MUST be mapped directly"; a copy that equals the content-type is accepted.
    rule = "must be in the content-type header, not in ce_datacontenttype"
    others = [text for text in copies if text != attributes.get("datacontenttype")]
    problems += [Problem("datacontenttype", rule, "K-04", preview(text)) for text in others[:1]]
    return attributes, problems


def encode_binary(event: Event) -> tuple[Headers, bytes | None]:
    """Return the headers of an event, in the order of the event's attributes, and the value of the record.

    Raises `EncodeError` if the datacontenttype looks like the content type of a structured record, because
    readers would read such a record in structured mode.
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
        if kind is DataKind.JSON:
            headers.append((CONTENT_TYPE, IMPLIED_TYPE))
    elif media_type(content_type).cloudevents:  # K-20: if "prefixed with the CloudEvents media type"
        raise EncodeError(
            "datacontenttype must not start with application/cloudevents in binary mode "
            f"(K-20, Kafka binding 3), got {preview(content_type)}; use structured mode"
        )
    return headers, payload
