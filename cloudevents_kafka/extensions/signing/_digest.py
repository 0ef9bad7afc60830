"""The digests of an event that its signature covers, as one JSON object (extension verifiability).

A digest is the SHA-256 of the concatenated digests of values. An absent value has the digest of
an empty one.
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
"""The attribute with the signature, which does not cover it."""

PAYLOAD_TYPE: Final = "https://cloudevents.io/verifiability/dsse/v0.1"
_CORE_NAMES: Final = (
    "id",
    "source",
    "specversion",
    "type",
    "datacontenttype",
    "dataschema",
    "subject",
    "time",
)
_NOT_TEXT: Final = {AttributeType.BOOLEAN: bool, AttributeType.INTEGER: int, AttributeType.BINARY: bytes}
_Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Names = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class Material(msgspec.Struct, frozen=True, omit_defaults=True):
    """The digest of the core attributes and the data, and the digest of the named extensions."""

    core: _Digest
    ext: _Digest | msgspec.UnsetType = msgspec.UNSET
    signedextattrs: _Names | msgspec.UnsetType = msgspec.UNSET

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the covered extensions, in the order of their digests."""
        return () if self.signedextattrs is msgspec.UNSET else self.signedextattrs


_read: Final = msgspec.json.Decoder(Material).decode


def digest_event(event: Event, names: Sequence[str] = ()) -> Material:
    """Return the digests of an event and of some extensions; raise `ValueError` as `canonical_bytes` does."""
    core = core_digest(event)
    return Material(core, extension_digest(event, names), tuple(names)) if names else Material(core)


def read_material(payload: bytes) -> Material:
    """Return the digests in a JSON object; raise `ValueError` if it is malformed or breaks a rule."""
    try:
        material = _read(payload.decode())  # as in `read_envelope`
    except RecursionError:
        raise ValueError("the digests must be a JSON object") from None
    if (material.ext is msgspec.UNSET) is not (material.signedextattrs is msgspec.UNSET):
        raise ValueError("ext and signedextattrs must be present together or not at all")
    check_signed_names(material.names)
    return material


def check_signed_names(names: Sequence[str]) -> None:
    """Raise `ValueError` for a repeated name, a core attribute or the signature's own attribute."""
    if len(set(names)) < len(names):
        raise ValueError("signedextattrs must not name an attribute twice")
    for name in names:
        if name in CORE or name == DSSE_MATERIAL:
            raise ValueError(f"signedextattrs must not name {name}")


def core_digest(event: Event) -> bytes:
    """Return the digest of the core attributes and the exact bytes of the data."""
    return _digest([*(canonical_bytes(event, name) for name in _CORE_NAMES), event.payload or b""])


def extension_digest(event: Event, names: Sequence[str]) -> bytes:
    """Return the digest of extension attributes in this order."""
    return _digest([canonical_bytes(event, name) for name in names])


def untyped_extensions(event: Event, names: Sequence[str]) -> list[str]:
    """Return the names of present extensions whose type is neither documented nor registered."""
    return [name for name in names if name in event and find_extension(name) is None]


def canonical_bytes(event: Event, name: str) -> bytes:
    """Return the bytes of an attribute by its type (Canonical Value Serialization).

    Raises `ValueError` for a value of another type, which lenient reading may have kept.
    """
    attributes, _ = raw_parts(event)
    value = attributes.get(name)
    if value is None:
        return b""
    kind = type_of(name)
    if find_extension(name) is not None and type(value) is not _NOT_TEXT.get(kind, str):
        raise ValueError(f"{name} must have the type {kind.value}, got {preview(value)}")
    if isinstance(value, bytes):
        return value
    text = canonical_text(value)
    return (to_utc_seconds(text) if kind is AttributeType.TIMESTAMP else text).encode()


def _digest(values: list[bytes]) -> bytes:
    return sha256(b"".join(sha256(value).digest() for value in values)).digest()
