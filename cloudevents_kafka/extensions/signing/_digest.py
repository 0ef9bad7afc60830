"""What the signature of an event covers: digests of it, as one JSON object (extension verifiability).

A digest is the SHA-256 of the digests of values, one behind the other; an absent value
counts as an empty one.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Final

import msgspec

from cloudevents_kafka.attributes.extension_types import find_extension, type_of
from cloudevents_kafka.attributes.timestamps import to_utc_seconds
from cloudevents_kafka.attributes.types import CORE, AttributeType, canonical_text
from cloudevents_kafka.errors import preview
from cloudevents_kafka.event import Event, raw_parts

DSSE_MATERIAL: Final = "dssematerial"
"""The attribute that holds the signature, and so is not covered by it."""

PAYLOAD_TYPE: Final = "https://cloudevents.io/verifiability/dsse/v0.1"
_COVERED: Final = ("id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject", "time")
_NOT_TEXT: Final = {AttributeType.BOOLEAN: bool, AttributeType.INTEGER: int, AttributeType.BINARY: bytes}
_Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Names = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class Material(msgspec.Struct, frozen=True, omit_defaults=True):
    """The digest of the core attributes and the data, and that of some extensions by name."""

    core: _Digest
    ext: _Digest | msgspec.UnsetType = msgspec.UNSET
    signedextattrs: _Names | msgspec.UnsetType = msgspec.UNSET

    @property
    def names(self) -> tuple[str, ...]:
        """The extensions that are covered, in the order in which they were digested."""
        return () if self.signedextattrs is msgspec.UNSET else self.signedextattrs


_read: Final = msgspec.json.Decoder(Material).decode


def digest_event(event: Event, names: Sequence[str] = ()) -> Material:
    """Digest an event and some of its extensions; raises `ValueError` where that cannot be done."""
    core = core_digest(event)
    return Material(core, extension_digest(event, names), tuple(names)) if names else Material(core)


def read_material(payload: bytes) -> Material:
    """Read the JSON object; raises `ValueError` where it is none or breaks a rule."""
    try:
        material = _read(payload.decode())  # see _dsse.read
    except RecursionError:
        raise ValueError("the digests are no JSON object") from None
    if (material.ext is msgspec.UNSET) is not (material.signedextattrs is msgspec.UNSET):
        raise ValueError("ext and signedextattrs must be there together or not at all")
    check_signed_names(material.names)
    return material


def check_signed_names(names: Sequence[str]) -> None:
    """Raise `ValueError` for names that cannot be signed as extensions."""
    if len(set(names)) < len(names):
        raise ValueError("signedextattrs must not name an attribute twice")
    for name in names:
        if name in CORE or name == DSSE_MATERIAL:
            raise ValueError(f"signedextattrs must not name {name}")


def core_digest(event: Event) -> bytes:
    """Digest the core attributes and the exact bytes of the data; raises `ValueError`."""
    return _digest([*(canonical_bytes(event, name) for name in _COVERED), event.payload or b""])


def extension_digest(event: Event, names: Sequence[str]) -> bytes:
    """Digest extension attributes in the order given; raises `ValueError`."""
    return _digest([canonical_bytes(event, name) for name in names])


def untyped_extensions(event: Event, names: Sequence[str]) -> list[str]:
    """List the extensions whose type nobody made known.

    An absent one is not among them: nothing is the same in every type.
    """
    return [name for name in names if name in event and find_extension(name) is None]


def canonical_bytes(event: Event, name: str) -> bytes:
    """Return the bytes of an attribute by its type (Canonical Value Serialization).

    Raises `ValueError` for a value that is not of its type: kept by lenient reading, say.
    """
    attributes, _ = raw_parts(event)
    value = attributes.get(name)
    if value is None:
        return b""
    kind = type_of(name)
    if find_extension(name) is not None and type(value) is not _NOT_TEXT.get(kind, str):
        raise ValueError(f"{name} is not of its type {kind.value}, got {preview(value)}")
    if isinstance(value, bytes):
        return value
    text = canonical_text(value)
    return (to_utc_seconds(text) if kind is AttributeType.TIMESTAMP else text).encode()


def _digest(values: list[bytes]) -> bytes:
    return sha256(b"".join(sha256(value).digest() for value in values)).digest()
