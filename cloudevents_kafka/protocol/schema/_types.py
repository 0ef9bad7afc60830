"""The primitive types: their encoding, and the annotations that declare them.

An annotation such as `Int32` is the Python type with its wire type. The length of a string, byte string
or array has a fixed width (guide, "Variable Length Primitives"), and is compact from the first
flexible version of the message (KIP-482).
"""

from __future__ import annotations

import uuid
from typing import Annotated, Final, NamedTuple, TypeAlias


class Fixed(NamedTuple):
    """An integer, float or bool of fixed width, big endian; ``code`` is its `struct` character."""

    name: str
    code: str
    size: int


class Varint(NamedTuple):
    """A variable-length integer (`varint`)."""

    name: str
    bits: int
    signed: bool


class Text(NamedTuple):
    """A UTF-8 string after its length in bytes."""

    name: str = "string"


class Blob(NamedTuple):
    """Bytes after their length; ``records`` is a message set or record batches.

    Only ``rest`` has no length: it extends to the end of the message (0.7).
    """

    name: str = "bytes"


class Uuid(NamedTuple):
    """A UUID, 16 bytes."""

    name: str = "uuid"


Scalar: TypeAlias = Fixed | Varint | Text | Blob | Uuid

INT8: Final = Fixed("int8", "b", 1)
INT16: Final = Fixed("int16", "h", 2)
INT32: Final = Fixed("int32", "i", 4)
INT64: Final = Fixed("int64", "q", 8)
UINT16: Final = Fixed("uint16", "H", 2)
UINT32: Final = Fixed("uint32", "I", 4)
FLOAT64: Final = Fixed("float64", "d", 8)
BOOLEAN: Final = Fixed("boolean", "?", 1)
STRING: Final = Text()
BYTES: Final = Blob()
RECORDS: Final = Blob("records")
REST: Final = Blob("rest")

Int8 = Annotated[int, INT8]
Int16 = Annotated[int, INT16]
Int32 = Annotated[int, INT32]
Int64 = Annotated[int, INT64]
UInt16 = Annotated[int, UINT16]
UInt32 = Annotated[int, UINT32]
Float64 = Annotated[float, FLOAT64]
Boolean = Annotated[bool, BOOLEAN]
String = Annotated[str, STRING]
Bytes = Annotated[bytes, BYTES]
Records = Annotated[bytes, RECORDS]
"""A message set or record batches; `records.Batches` decodes them."""
Rest = Annotated[bytes, REST]
"""All remaining bytes; for the last field of a message only."""
UuidField = Annotated[uuid.UUID, Uuid()]
NO_UUID: Final = uuid.UUID(int=0)

VARINTS: Final = {
    f"{sign}varint{bits}": Varint(f"{sign}varint{bits}", bits, signed=not sign)
    for bits in (16, 32, 64)
    for sign in ("", "unsigned_")
}
"""The types of KIP-625, by name."""

INTEGERS: Final[dict[str, Fixed | Varint]] = {
    t.name: t for t in (INT8, INT16, INT32, INT64, UINT16)
} | VARINTS
"""All integer types, by name."""

ENCODINGS: Final[dict[str, Fixed | Varint]] = {
    **{f"fixed{t.size * 8}": t for t in (INT16, INT32, INT64)},
    **{f"unsigned{bits}": VARINTS[f"unsigned_varint{bits}"] for bits in (16, 32, 64)},
    **{f"signed{bits}": VARINTS[f"varint{bits}"] for bits in (16, 32, 64)},
}
"""The encodings of KIP-625's alternative B, by name."""
