"""Write a changed event into the record from which lenient reading read the event.

Several headers or JSON members of one record may represent the same attribute. In this case, lenient reading
has read only one of these headers or members. If the attribute was changed, its new value replaces the header
or member that was read, under the exact name. Headers and members that lenient reading left out are kept,
even if no attribute has their name. If an attribute was read and then removed from the event, all headers or
members that represent the attribute are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from cloudevents_kafka.attributes.types import (
    INTEGER_RANGE,
    AttributeValue,
    canonical_text,
    is_name,
)
from cloudevents_kafka.binding._decode import Decoded
from cloudevents_kafka.binding._headers import (
    CONTENT_TYPE,
    CONTENT_TYPE_COPY,
    exact_name,
    fold_name,
    given_name,
    header_of,
)
from cloudevents_kafka.binding.lenient import rank_of_type, type_of_data
from cloudevents_kafka.codecs.json import is_parsable
from cloudevents_kafka.codecs.json_grammar import find_members
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.formats import protobuf_decoder
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.base import InvalidAttributes
from cloudevents_kafka.record import Headers, Record, with_bytes_headers

_JSON: Final = "json"
_PROTOBUF: Final = "protobuf"
_NOT_ATTRIBUTES: Final = frozenset({"data", "data_base64"})
_BOM: Final = b"\xef\xbb\xbf"
_NULL: Final = b"null"
_BETWEEN: Final = b" \t\n\r,{"
"""The characters that may stand between a JSON member and the name of the next member."""
_DATA_TYPE: Final = "datacontenttype"


def keep_left_out(written: Record, event: Event, origin: Decoded) -> tuple[Headers, bytes | None]:
    """Return the headers and value of a changed event, in the mode and format of the original record."""
    like = origin.record.headers
    if origin.mode == "binary":
        headers = _quoted(written.headers) if _is_quoted(like) else written.headers
        return _merge_binary(headers, like, raw_parts(origin.event)[0]), written.value
    return _merge_structured(written.headers, like), _with_left_out(written.value or b"", event, origin)


def _is_quoted(headers: Headers) -> bool:
    """Return whether the record quotes its header values, which the value of the specversion header shows."""
    names = (_attribute_in(name) for name, _ in headers)
    places = _read_places((name, *_rank_of(*pair)) for name, pair in zip(names, headers, strict=True))
    return (headers[places["specversion"]][1] or b"").startswith(b'"')


def _quoted(headers: Headers) -> Headers:
    return [
        (name, value if value is None or name == CONTENT_TYPE else msgspec.json.encode(value.decode()))
        for name, value in headers
    ]


def _merge_binary(written: Headers, like: Headers, before: Mapping[str, AttributeValue]) -> Headers:
    new = dict(written)
    attributes = {_attribute_in(header) or "" for header in new}
    names = [_attribute_in(header) for header, _ in like]
    if _types_differ(like):  # all were left out; if there is a copy in ce_datacontenttype, the copy was read
        named = zip(names, like, strict=True)
        names = ["" if exact_name(header) == CONTENT_TYPE else name for name, (header, _) in named]
    places = _read_places((name, *_rank_of(*pair)) for name, pair in zip(names, like, strict=True))
    if _DATA_TYPE in places:
        places[_DATA_TYPE] = _place_of_type(like, places[_DATA_TYPE])
    type_place = places.get(_DATA_TYPE)
    came_type = None if type_place is None or _is_copy(like[type_place][0]) else like[type_place][1]
    copies = {new.get(CONTENT_TYPE), None}
    is_removed = _DATA_TYPE in before and _DATA_TYPE not in attributes
    merged: Headers = []
    for index, ((header, value), attribute) in enumerate(zip(like, names, strict=True)):
        exact = header_of(attribute) if attribute else header
        is_read = attribute is not None and places.get(attribute) == index
        if is_read and exact in new:
            merged.append((exact, new.pop(exact)))
        elif came_type is not None and _is_copy(header):
            if value in copies or (value != came_type and not is_removed):
                merged.append((header, value))
        elif value is None or _stays(
            attribute, before, attributes, is_read=is_read, is_exact=header == exact
        ):
            merged.append((header, value))
    return merged + list(new.items())


def _types_differ(headers: Headers) -> bool:
    """Return whether several misspelled content-type headers differ, and no header has the exact name."""
    found = [pair for pair in headers if pair[1] is not None and exact_name(pair[0]) == CONTENT_TYPE]
    return len({value for _, value in found}) > 1 and CONTENT_TYPE not in dict(found)


def _is_copy(name: str) -> bool:
    return exact_name(name) == CONTENT_TYPE_COPY


def _rank_of(name: str, value: object) -> tuple[str, bool]:
    return name, value is not None


def _stays(
    attribute: str | None,
    before: Collection[str],
    new: Collection[str],
    *,
    is_read: bool,
    is_exact: bool,
) -> bool:
    """Return whether a header or a member of the original record is kept in the changed record.

    A header or a member is kept in two cases: it does not belong to the event, or lenient reading has left it
    out and no new value replaces it.

    ``before`` contains the names of the attributes in the event that was read, and ``new`` contains the names
    of the attributes in the changed event.
    """
    if not attribute:
        return True
    if attribute in before:
        return attribute in new and not is_read
    return not (attribute in new and is_exact)


def _attribute_in(header: str) -> str | None:
    """Return the attribute of a header, ``""`` if the header is left out, or None for other headers."""
    exact = exact_name(header)
    if exact is None:
        return None
    return _DATA_TYPE if exact == CONTENT_TYPE else fold_name(given_name(header)) or ""


def _read_places(found: Iterable[tuple[str | None, str, bool]]) -> dict[str, int]:
    """Return the index of the header or member from which each attribute was read.

    ``found`` yields three values for each header or member: the name of its attribute, its own name, and
    whether it has a value that can be read.
    """
    ranks: dict[str, tuple[bool, bool, bool, int]] = {}
    for index, (attribute, name, has_value) in enumerate(found):
        if attribute:
            rank = (has_value, not _is_copy(name), name in {attribute, header_of(attribute)}, index)
            ranks[attribute] = max(rank, ranks.get(attribute, rank))
    return {attribute: rank[-1] for attribute, rank in ranks.items()}


def _place_of_type(like: Headers, place: int) -> int:
    """Return the index of the content type that was read, if it is in several headers with one name."""
    name = like[place][0]
    if name not in {CONTENT_TYPE, CONTENT_TYPE_COPY}:
        return place
    decides = name == CONTENT_TYPE
    ranks = [
        (rank_of_type(value, decides=decides), index)
        for index, (header, value) in enumerate(like)
        if header == name and value is not None
    ]
    return max(ranks)[1] if ranks else place


def _merge_structured(written: Headers, like: Headers) -> Headers:
    """Return the headers of a record; the new content-type replaces the old one and all its copies."""
    names = [_attribute_in(header) for header, _ in like]
    place = _read_places((name, *_rank_of(*pair)) for name, pair in zip(names, like, strict=True)).get(
        _DATA_TYPE
    )
    if place is not None:  # headers that differ were left out
        place = None if _types_differ(like) else _place_of_type(like, place)
    merged: Headers = []
    for index, ((header, value), attribute) in enumerate(zip(like, names, strict=True)):
        if index == place:
            merged += written
        elif attribute is None or value is None or exact_name(header) == CONTENT_TYPE:
            merged.append((header, value))
    return merged if place is not None else merged + written


def _with_left_out(value: bytes, event: Event, origin: Decoded) -> bytes:
    """Return the encoded event ``value`` with the attributes that lenient reading left out of the event."""
    came = origin.record.value or b""
    before, new = raw_parts(origin.event)[0], raw_parts(event)[0]
    if origin.format == _JSON:
        read = before.keys() - {_DATA_TYPE} if _has_type_of_header(origin, new) else before
        members = [*_left_out_members(came.removeprefix(_BOM), read, new)]
        return b"{%b,%b" % (b",".join(members), value[1:]) if members else value
    if origin.format == _PROTOBUF:  # the fields of two messages may follow each other
        return value + b"".join(_left_out_entries(came, before, new))
    form = formats.find(origin.format)
    given = {} if form is None else _attributes_of(form, came)
    names = [*given]
    left_out = {names[index]: _writable(given[names[index]]) for index in _left_out(names, before, new)}
    if form is None or not left_out:
        return value
    return form.encode(unchecked_event({**new, **left_out}, event.payload, event.kind))


def _has_type_of_header(origin: Decoded, new: Collection[str]) -> bool:
    """Return whether a changed event has the content type of the data that no JSON member contained.

    Lenient reading has then read this content type from the content-type header.
    """
    of_data = type_of_data(with_bytes_headers(origin.record).headers)
    return of_data is not None and of_data == origin.event.datacontenttype and _DATA_TYPE in new


def _writable(value: AttributeValue) -> AttributeValue:
    """Return a value that was left out, or its text if it is a number that an Avro int cannot contain."""
    return canonical_text(value) if type(value) is int and value not in INTEGER_RANGE else value


def _left_out_entries(value: bytes, before: Collection[str], new: Collection[str]) -> Iterator[bytes]:
    """Yield each entry of a Protobuf message's map that was not read as an attribute."""
    entries = [*protobuf_decoder.entries(value)]
    # P-01: a required attribute has a field of its own, and no entry of the map is read instead of the field.
    fields = dict(protobuf_decoder.read(value)[0])
    names = [*(name for (name, _, _), _ in entries), *fields]
    unread = {index for index, ((_, kind, _), _) in enumerate(entries) if kind is None}
    for index in _left_out(names, before, new, unread):
        if names[index] not in new:
            yield entries[index][1]


def _left_out_members(value: bytes, before: Collection[str], new: Collection[str]) -> Iterator[bytes]:
    """Yield the text of each JSON member that was not read as an attribute."""
    members: list[tuple[str, bytes]] = []
    unread: set[int] = set()
    before_name = 0
    for name, start, end in find_members(value):
        if name not in _NOT_ATTRIBUTES and value[start:end] != _NULL:
            if not is_parsable(value[start:end]):
                unread.add(len(members))
            members.append((name, value[before_name:end].lstrip(_BETWEEN)))
        before_name = end
    for index in _left_out([name for name, _ in members], before, new, unread):
        yield members[index][1]


def _left_out(
    names: Sequence[str], before: Collection[str], new: Collection[str], unread: Collection[int] = ()
) -> Iterator[int]:
    """Yield the indexes in ``names`` of names that were not read as attributes, and are therefore kept.

    ``unread`` contains the indexes of members that the JSON parser refuses.
    """
    attributes = [name if is_name(name) else fold_name(name) for name in names]
    named = enumerate(zip(attributes, names, strict=True))
    places = _read_places((attribute, name, index not in unread) for index, (attribute, name) in named)
    for index, (name, attribute) in enumerate(zip(names, attributes, strict=True)):
        is_read = attribute is not None and places[attribute] == index
        if _stays(attribute, before, new, is_read=is_read, is_exact=name == attribute):
            yield index


def _attributes_of(form: Any, value: bytes) -> Mapping[str, AttributeValue]:
    """Return the attributes in the value of a record, as they were received.

    This function is for event formats other than JSON and Protobuf.
    """
    try:
        return raw_parts(form.decode(value))[0]
    except InvalidAttributes as error:
        given = {name: value for name, value in error.received.items() if value is not None}
        return raw_parts(error.event)[0] | given
