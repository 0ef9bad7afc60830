"""The names of the headers that carry attributes in binary mode, and the attributes in these headers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from cloudevents_kafka.attributes.types import CORE, is_name
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.primitives.preview import preview

CONTENT_TYPE: Final = "content-type"  # K-04: "MUST be mapped directly to the CloudEvents datacontenttype"
CONTENT_TYPE_COPY: Final = "ce_datacontenttype"  # some producers write it in addition to content-type
IMPLIED_TYPE: Final = b"application/json"  # "SHOULD be set explicitly to the implied `datacontenttype`"
KEY_SCHEMA_ID: Final = "__key_schema_id"  # of a schema registry
SCHEMA_ID: Final = "__value_schema_id"  # of a schema registry; it belongs to the data, not to the event
PREFIX: Final = "ce_"  # K-05: "CloudEvent attributes are prefixed with ce_"
_DROPPED: Final = str.maketrans("", "", "-_.")
OTHER_PREFIXES: Final = re.compile("ce-|cloudevents[:_]")  # prefixes in the bindings for HTTP and AMQP

_SHOWN: Final = 3  # values of a header in a message

header_names: Final[dict[str, str]] = {}
"""A cache that maps the name of a header to the result of `header_of`."""


def header_of(attribute: str) -> str:
    """Return the header that carries an attribute."""
    header = CONTENT_TYPE if attribute == "datacontenttype" else PREFIX + attribute
    return remember(header_names, attribute, header)


def attribute_of(header: str) -> str | None:
    """Return the attribute in a header, ``""`` for an invalid name, or None if it is not an event header."""
    if header == CONTENT_TYPE:
        return "datacontenttype"
    if not isinstance(header, str) or not header.startswith(PREFIX) or header == PREFIX:
        return None
    name = header[len(PREFIX) :]
    return name if is_name(name) and name != "datacontenttype" else ""


def exact_name(header: str) -> str | None:
    """Return the header name of the Kafka binding that ``header`` equals or nearly equals, or None."""
    folded = str(header).lower()
    if prefix := OTHER_PREFIXES.match(folded):
        folded = PREFIX + folded[prefix.end() :]
    return folded if folded == CONTENT_TYPE or (folded.startswith(PREFIX) and folded != PREFIX) else None


def given_name(header: str) -> str:
    """Return the attribute name in a header, which follows a prefix such as ``ce_``, ``CE_`` or ``ce-``."""
    text = str(header)
    prefix = OTHER_PREFIXES.match(text.lower())
    return text[len(PREFIX) if prefix is None else prefix.end() :]


def fold_name(name: str) -> str | None:
    """Return the attribute that lenient reading recognizes in a misspelled attribute name, or None.

    Capital letters are converted to small letters. The characters ``-``, ``_`` and ``.`` are removed only if
    the result is the name of an extension.
    """
    lower = name.lower() if name.isascii() else ""
    if is_name(lower):
        return lower
    folded = lower.translate(_DROPPED)
    return folded if is_name(folded) and folded not in CORE else None


def name_in(header: str) -> str:
    """Return the name of the attribute in an event header, even if the attribute name is invalid."""
    return attribute_of(header) or header[len(PREFIX) :]


def preview_all(values: Iterable[bytes]) -> str:
    """Return a text for error messages that lists the distinct values of a repeated header."""
    return " and ".join(preview(value.decode("utf-8", "replace")) for value in sorted(set(values))[:_SHOWN])


def decode_text(header: str, value: bytes, problems: list[Problem]) -> str | None:
    """Return the text of a header's value; if the value is not UTF-8, return None and add a problem."""
    try:
        return value.decode()
    except UnicodeDecodeError:  # K-06: "header values MUST be encoded as UTF-8"
        problems.append(Problem(header, "header value must be UTF-8", "K-06", preview(value)))
        return None
