"""A fast check that accepts most valid events, and no invalid one.

`validation` decides about events that it does not accept. Valid names and values that many
events share are cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes._uri import is_uri, is_uri_reference
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import is_timestamp
from cloudevents_kafka.attributes.types import SPECVERSION, is_name, is_string
from cloudevents_kafka.primitives.bounded import MAX_ENTRIES, MAX_KEY_LENGTH, remember

_sources: Final[dict[str, bool]] = {}
_schemas: Final[dict[str, bool]] = {}
_ONLY_TEXTS: Final = frozenset((str,))
_write_json: Final = msgspec.json.Encoder().encode


def is_valid_fast(attributes: Mapping[str, Any]) -> bool:
    """Return whether attributes are texts that keep all rules; False means that `validation` decides."""
    return (
        _ONLY_TEXTS.issuperset(map(type, attributes.values()))
        and are_text_names(attributes.keys())
        and ("datacontenttype" not in attributes or media_type(attributes["datacontenttype"]).valid)
        and are_valid_texts(attributes, "".join(attributes.values()))
    )


def are_valid_texts(attributes: Mapping[str, Any], joined: str = "") -> bool:
    """Return whether texts, whose names pass `are_text_names`, keep all rules.

    ``joined`` is all texts together, which must be a String; it is empty if the caller has
    checked that. The caller also checks datacontenttype, which it parses anyway.
    """
    # JSON escapes all ASCII control characters (T-06) except DEL, which makes the text longer.
    if joined and not (
        len(_write_json(joined)) == len(joined) + 2 and "\x7f" not in joined
        if joined.isascii()
        else is_string(joined)
    ):
        return False
    try:
        source = attributes["source"]
        return (
            attributes["specversion"] == SPECVERSION
            and "id" in attributes
            and "type" in attributes
            and all(attributes.values())
            and (source in _sources or (is_uri_reference(source) and remember(_sources, source, True)))
            and ("time" not in attributes or is_timestamp(attributes["time"]))
            and ("dataschema" not in attributes or _is_schema(attributes["dataschema"]))
        )
    except KeyError:
        return False


def _is_schema(text: str) -> bool:
    return text in _schemas or (is_uri(text) and remember(_schemas, text, True))


def are_text_names(names: AbstractSet[str]) -> bool:
    """Return whether all names are names of attributes whose values may be any text."""
    table = current.table
    known = table.text_names
    if names <= known:
        return True
    if not all(is_name(name) and name not in table.constrained for name in names):
        return False
    if len(known) + len(names) > MAX_ENTRIES:
        known.clear()
    known.update(name for name in islice(names, MAX_ENTRIES) if len(name) <= MAX_KEY_LENGTH)
    return True
