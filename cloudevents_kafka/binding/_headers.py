"""The names of the headers that carry attributes, and the attributes that headers carry."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.attributes.types import is_name
from cloudevents_kafka.primitives.bounded import remember


def _attribute_of(header: str) -> str | None:
    if header == CONTENT_TYPE:
        return "datacontenttype"
    if not isinstance(header, str) or not header.startswith(PREFIX) or header == PREFIX:
        return None
    name = header[len(PREFIX) :]
    return name if is_name(name) and name != "datacontenttype" else ""


header_names: Final[dict[str, str]] = {}
"""The headers of the attributes of earlier calls of `header_of`."""


def header_of(attribute: str) -> str:
    """Return the header that carries an attribute."""
    header = CONTENT_TYPE if attribute == "datacontenttype" else PREFIX + attribute
    return remember(header_names, attribute, header)


def attribute_of(header: str) -> str | None:
    """Return the attribute that a header carries; None for a foreign one, ``""`` for a bad name."""
    return _attribute_of(header)


def name_in(header: str) -> str:
    """Return what a header of the event's names, be it a good name or none."""
    return _attribute_of(header) or header[len(PREFIX) :]


CONTENT_TYPE: Final = "content-type"
CONTENT_TYPE_COPY: Final = "ce_datacontenttype"  # which some producers write beside content-type
PREFIX: Final = "ce_"
