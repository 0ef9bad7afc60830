"""The names of the headers that carry attributes, and the attributes that headers carry."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.attributes.types import is_name

_REMEMBERED: Final = 4096
_REMEMBERED_LENGTH: Final = 256


def _attribute_of(header: str) -> str | None:
    if header == CONTENT_TYPE:
        return "datacontenttype"
    if not isinstance(header, str) or not header.startswith(PREFIX) or header == PREFIX:
        return None
    name = header[len(PREFIX) :]
    return name if is_name(name) and name != "datacontenttype" else ""


_header_names: Final[dict[str, str]] = {}  # of attributes met: see header_of


def header_of(attribute: str) -> str:
    """Return the header that carries an attribute; remembered, within bounds."""
    header = CONTENT_TYPE if attribute == "datacontenttype" else PREFIX + attribute
    if len(header) <= _REMEMBERED_LENGTH:
        if len(_header_names) >= _REMEMBERED:
            _header_names.clear()
        _header_names[attribute] = header
    return header


def attribute_of(header: str) -> str | None:
    """Return the attribute that a header carries; None for a foreign one, ``""`` for a bad name."""
    return _attribute_of(header)


def name_in(header: str) -> str:
    """Return what a header of the event's names, be it a good name or none."""
    return _attribute_of(header) or header[len(PREFIX) :]


CONTENT_TYPE: Final = "content-type"
PREFIX: Final = "ce_"
