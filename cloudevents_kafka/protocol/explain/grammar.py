"""The grammar of a message in a version, in the notation of Kafka's 0.8 protocol guide.

::

    MetadataResponse => [Broker][TopicMetadata]
      Broker => NodeId Host Port
        NodeId => int32
        ...

A sequence of productions means their concatenation. ``[foo]`` is an array, and in ``|foo|``, foo is optional.
If the guide has a name for a message or field, the grammar uses this name. The notation is extended:
``nullable_string`` and ``nullable[foo]`` may be null, which is encoded as a length of -1, or as 0 in compact
types. The guide describes null values in its text, but not in its grammar. The length of a ``compact_string``
or ``compact[foo]`` is a varint, and ``tagged_fields(0:Foo)`` lists the declared tags (KIP-482).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, LayoutField, LengthPrefixed, layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.messages.produce import MessageSetEntry
from cloudevents_kafka.protocol.schema import RECORDS, Structure, Versions, spec_of

MESSAGE_SETS: Final = Versions(0, 2)
"""The versions of Produce and Fetch whose records are message sets, as in Kafka's 0.8 protocol guide."""


class Production(NamedTuple):
    """A production of the grammar: a name, a right side, and the productions of the names in the right side.

    The name is "" while the name is unknown.
    """

    name: str
    body: str
    parts: tuple[Production, ...] = ()


def text(structure: type[Structure], version: int) -> str:
    """Return the grammar of a message as text; raise `Unsupported` if the message has no such version."""
    return "\n".join(_lines(production(structure, version), ""))


def production(structure: type[Structure], version: int) -> Production:
    """Return the grammar of a message; raise `Unsupported` if the message has no such version."""
    _, body, parts = _structure(layout_of(structure, version))
    if structure in {RequestHeader, ResponseHeader}:
        message = _message(structure, version)
        body, parts = f"{body} {message.name}", (*parts, *([message] if message.body else []))
    if structure is MessageSetEntry:
        body = f"[{body}]"
    return Production(name_of(structure), body, parts)


def name_of(structure: type[Structure]) -> str:
    """Return a message's name in Kafka's 0.8 protocol guide, or the class name if the guide has no name."""
    return spec_of(structure).guide or structure.__name__


def _lines(production: Production, indent: str) -> Iterator[str]:
    yield f"{indent}{production.name} => {production.body}"
    for part in production.parts:
        yield from _lines(part, f"{indent}  ")


def _structure(layout: Layout) -> Production:
    sides = [_field(field, layout.version) for field in layout.fields]
    words = [side.body for side in sides]
    if layout.optional_from < len(words):
        # S0-P5: "These are represented as |foo|."
        words[layout.optional_from :] = [f"|{' '.join(words[layout.optional_from :])}|"]
    tagged = {tag: _field(field, layout.version) for tag, field in layout.tagged.items()}
    if layout.flexible:
        known = " ".join(f"{tag}:{side.body}" for tag, side in tagged.items())
        words.append(f"tagged_fields({known})" if known else "tagged_fields")
    parts = [part for side in [*sides, *tagged.values()] for part in side.parts]
    # A production that occurs in several structures is listed once.
    return Production("", " ".join(words).replace("] [", "]["), tuple(dict.fromkeys(parts)))


def _field(field: LayoutField, version: int) -> Production:
    """Return the grammar's right side for a field, with the field's name in Kafka's guide.

    If the guide does not name the field, the name comes from the declaration of the field.
    """
    name = field.declared.wire.guide
    if isinstance(field.codec, LengthPrefixed) and field.codec.type is RECORDS and version in MESSAGE_SETS:
        return Production("", name or "", (Production((name or "").split()[0], "int32"),))
    if name is None or " " in name:
        name = "".join(word.title() for word in field.name.split("_"))
    if not name:
        return _type(field.codec)
    if isinstance(field.codec, Array) and name[0] == "[":
        return _named(_array(field.codec, name[1:-1]), name[1:-1], field.codec.element)
    return _named(name, name, field.codec)


def _named(body: str, name: str, codec: Codec) -> Production:
    """Return a production with the right side ``body``; its only part is the production of ``name``."""
    return Production("", body, (_type(codec)._replace(name=name),))


def _type(codec: Codec) -> Production:
    if isinstance(codec, Layout):
        return _structure(codec)
    if isinstance(codec, Array):
        element = _type(codec.element)
        return Production("", _array(codec, element.body), element.parts)
    if isinstance(codec, LengthPrefixed):
        return Production("", codec.name)
    return Production("", codec.name)


def _array(codec: Array, element: str) -> str:
    marks = ["compact"] * codec.compact + ["nullable"] * codec.nullable
    return f"{'_'.join(marks)}[{element}]"


def _message(header: type[Structure], version: int) -> Production:
    """Return the production of the messages that have this version of a header."""
    name = "RequestMessage" if header is RequestHeader else "ResponseMessage"
    return Production(
        name, " | ".join(name_of(message) for message, used in _headers(header) if version in used)
    )


def _headers(header: type[Structure]) -> Iterator[tuple[type[Structure], set[int]]]:
    """Yield each message, and the set of header versions that the message uses."""
    for api in APIS.values():
        versions = range(api.versions.first, api.versions.last + 1)
        if header is RequestHeader:
            yield api.request, {frames.request_header(api.key, version) for version in versions}
        else:
            yield api.response, {frames.response_header(api.response, version) for version in versions}
