"""Reading and writing by functions made for one layout: what the interpreter does, with nothing to look up.

Each layout gets a function of straight code: neighbouring fields of fixed width are one
call of `struct`, and structures in arrays are read in line. It checks no more than it
must to end soon and without harm. Where anything is wrong it gives up, and the interpreter
goes over the same bytes, or the same message, to say what.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

from cloudevents_kafka.protocol.codec import _decoder_source as decoder_source
from cloudevents_kafka.protocol.codec import _encoder_source as encoder_source
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.codec._source_builder import Code
from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.schema import Structure, layout_of

Decoder: TypeAlias = Callable[[bytes, int], tuple[Structure, int]]
Encoder: TypeAlias = Callable[[Structure], bytes]

_GIVING_UP: Final = (
    ProtocolError,
    struct.error,
    IndexError,
    AttributeError,
    TypeError,
    ValueError,  # of UTF-8
    OverflowError,
)


def read(structure: type[Structure], version: int, data: bytes, at: int = 0) -> tuple[Structure, int]:
    """Read a message; return it and the position after it. `Malformed`, `Truncated`."""
    try:
        return decoder(structure, version)(data, at)
    except _GIVING_UP:
        return interpreter.read(layout_of(structure, version), data, at)


def write(value: Structure, version: int) -> bytes:
    """Write a message; `Unencodable` where a value does not fit or the version cannot carry it."""
    try:
        return encoder(type(value), version)(value)
    except _GIVING_UP:
        return interpreter.write(layout_of(type(value), version), value)


@cache
def decoder(structure: type[Structure], version: int) -> Decoder:
    """Return the reading function of a message's version, made on first use."""
    made: Decoder = _made(decoder_source.source(layout_of(structure, version)), structure, version)
    return made


@cache
def encoder(structure: type[Structure], version: int) -> Encoder:
    """Return the writing function of a message's version, made on first use."""
    made: Encoder = _made(encoder_source.source(layout_of(structure, version)), structure, version)
    return made


def _made(code: Code, structure: type[Structure], version: int) -> Any:
    scope = dict(code.names)
    exec(compile(code.text, f"<{structure.__name__} v{version}>", "exec"), scope)  # noqa: S102  # of declarations, never of input
    return scope["run"]
