"""Binary content mode: attributes in ``ce_`` headers, the data as the record's value.

Header values are the canonical texts in UTF-8, unquoted and without percent-encoding;
``content-type`` carries datacontenttype; no data is a null value (Kafka binding 3.2).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.fast_validation import are_text_names
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.types import AttributeValue, canonical_text
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.binding._headers import (
    CONTENT_TYPE,
    CONTENT_TYPE_COPY,
    _attribute_of,
    header_names,
    header_of,
    name_in,
)
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import EncodeError, InvalidEvent, Problem, preview
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.record import Headers, Record

_IMPLIED: Final = b"application/json"
_SUSPICIOUS: Final = "?"  # stands for every header that needs a closer look; no attribute has this name


# --- reading -----------------------------------------------------------------


def plain_attributes(headers: Headers) -> dict[str, Any] | None:
    """Collect attributes from plain headers; None where one of them needs a closer look."""
    attributes: dict[str, Any] = {}
    foreign = 0
    names = current.table.header_names
    try:
        for header, value in headers:
            name = names[header]
            if name is None:
                foreign += 1
            else:
                attributes[name] = value.decode()  # type: ignore[union-attr]  # a null's AttributeError is the test
    except KeyError:
        return plain_attributes(headers) if _learn(headers, names) else None
    except (AttributeError, UnicodeDecodeError):
        return None
    if len(attributes) + foreign != len(headers) or _SUSPICIOUS in attributes:
        return None  # one occurs twice, or has a bad name
    return attributes


def _learn(headers: Headers, names: dict[str, str | None]) -> bool:
    """Remember, within bounds, which attributes headers carry, None for foreign ones; false if too many.

    An attribute that is not plain text, by its name or by its type, is suspicious.
    """
    for header, _ in headers:
        if isinstance(header, str):
            name = _attribute_of(header)
            remember(names, header, name if name is None or are_text_names({name}) else _SUSPICIOUS)
    return all(header in names for header, _ in headers)


def decode_binary(record: Record) -> Event:
    """Read a binary-mode record; raises `InvalidEvent`, naming every problem."""
    texts, problems = _read_headers(record.headers)
    unread = [_attribute_of(str(problem.attribute)) for problem in problems]
    attributes, problems = validate(texts, problems, unread)
    if problems:
        raise InvalidEvent(problems)
    return unchecked_event(attributes, record.value)


def _read_headers(headers: Headers) -> tuple[dict[str, AttributeValue], list[Problem]]:
    """Give the texts of attributes, also of badly named ones, and what is wrong with how they came."""
    attributes: dict[str, AttributeValue] = {}
    problems: list[Problem] = []
    copies: list[str] = []
    counts: Counter[str] = Counter()
    for header, value in headers:
        if value is None or _attribute_of(header) is None:
            continue
        counts[header] += 1
        try:
            text = value.decode()
        except UnicodeDecodeError:
            problems.append(Problem(header, "header value must be UTF-8", "K-06", preview(value)))
            continue
        if header == CONTENT_TYPE_COPY:
            copies.append(text)
        else:
            attributes[name_in(header)] = text  # the last one counts, as in JSON
    problems += [
        Problem(name_in(header), f"header {header} occurs more than once", "N-05")
        for header, count in counts.items()
        if count > 1
    ]
    return attributes, problems + _copy_problems(copies, attributes.get("datacontenttype"))


def _copy_problems(texts: list[str], content_type: AttributeValue | None) -> list[Problem]:
    """Judge ce_datacontenttype, which some write beside content-type: a copy does no harm."""
    rule = "is carried by the content-type header, not by ce_datacontenttype"
    others = [text for text in texts if text != content_type]
    return [Problem("datacontenttype", rule, "K-04", preview(text)) for text in others[:1]]


# --- writing -------------------------------------------------------------------


def encode_binary(event: Event) -> tuple[Headers, bytes | None]:
    """Write an event as headers, in the order of its attributes, and a value.

    A JSON value without a content type gets one, ``application/json``, which is what
    it is (R-10). Raises `EncodeError` for a datacontenttype that would make receivers
    take the record for a structured one (K-20).
    """
    attributes, _ = raw_parts(event)
    names = header_names
    try:
        headers: Headers = [(names[name], value.encode()) for name, value in attributes.items()]  # type: ignore[union-attr]  # all text, nearly always
    except (AttributeError, KeyError):  # not all text, or a name that is not cached
        headers = [(header_of(name), canonical_text(value).encode()) for name, value in attributes.items()]
    content_type = attributes.get("datacontenttype")
    if not isinstance(content_type, str):
        if event.kind is DataKind.JSON:
            headers.append((CONTENT_TYPE, _IMPLIED))
    elif media_type(content_type).cloudevents:
        raise EncodeError(
            f"datacontenttype {preview(content_type)} would make the record look structured "
            "(K-20, Kafka binding 3); use structured mode"
        )
    return headers, event.payload
