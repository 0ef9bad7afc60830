"""Encoding and decoding with generated functions, one function for each layout.

A generated function contains code for each field of a layout. One call of `struct` decodes or encodes
adjacent fields of fixed width, and structures in arrays are decoded inline. The function makes only the
checks that limit the function's work and memory. If a generated function raises an error that is listed in
`FALLBACKS` or `_ENCODE_FALLBACKS`, the module `interpreter` reads the same bytes or message again, and
locates the error. In an array, the module `interpreter` begins at the last element that the generated
function has reached, so decoding an invalid frame takes no longer than decoding a valid frame. Any other
error of generated code is a bug, and propagates.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.codec._decoder_source import FALLBACKS, decoder_source
from cloudevents_kafka.protocol.codec._encoder_source import encoder_source
from cloudevents_kafka.protocol.codec._function_source import FallBack, FunctionSource
from cloudevents_kafka.protocol.errors import Unencodable
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.schema import Structure

_S = TypeVar("_S", bound=Structure)

Decoder: TypeAlias = Callable[..., tuple[Any, int]]
"""A function that is called with the data, an index, and optionally the memory limit of `decode`."""
Encoder: TypeAlias = Callable[[Structure], bytes]

_ENCODE_FALLBACKS: Final = (
    FallBack,  # a value has another type, or the version cannot carry it
    struct.error,  # a number does not fit its field, or is not a number
    OverflowError,  # an int does not fit a float64
    UnicodeEncodeError,  # a string has surrogates
    Unencodable,  # from `varint` and the encoding of tagged fields
)


def decode(
    structure: type[_S], version: int, data: bytes, at: int = 0, *, memory: int = interpreter.MEMORY
) -> tuple[_S, int]:
    """Return the message at index ``at``, and the index after the message.

    Raises `Unsupported`, `Malformed` and `Truncated`. For ``memory``, see `interpreter.decode`.
    """
    run = decoder(structure, version)
    try:
        return run(data, at, memory)
    except FALLBACKS as error:
        marks = error.marks if isinstance(error, FallBack) else ()
    # Here, the exception has been freed, and so has the decoded part of the message.
    layout = layout_of(structure, version)
    if marks:
        interpreter.decode(layout, data, at, memory=memory, marks=marks)
    return interpreter.decode(layout, data, at, memory=memory)


def encode(value: Structure, version: int) -> bytes:
    """Return the bytes of a message.

    Raises `Unsupported`. Raises `Unencodable` if a value does not fit its field, or if the version has no
    field for the value.
    """
    run = encoder(type(value), version)
    try:
        return run(value)
    except _ENCODE_FALLBACKS:
        return interpreter.encode(layout_of(type(value), version), value)
    except TypeError:
        # The ``__index__`` of a value may have raised the error, as the ``__index__`` of an array does. In
        # this case, the next line raises `Unencodable`.
        interpreter.encode(layout_of(type(value), version), value)
        raise


@cache
def decoder(structure: type[Structure], version: int) -> Decoder:
    """Return the decoding function of a message in a version; the function is compiled on first use.

    The returned function raises `FallBack` and other errors, which `decode` handles.
    """
    run: Decoder = _compiled(decoder_source(layout_of(structure, version)), structure, version)
    return run


@cache
def encoder(structure: type[Structure], version: int) -> Encoder:
    """Return the encoding function of a message in a version; the function is compiled on first use.

    The returned function raises `FallBack` and other errors, which `encode` handles.
    """
    run: Encoder = _compiled(encoder_source(layout_of(structure, version)), structure, version)
    return run


def _compiled(source: FunctionSource, structure: type[Structure], version: int) -> Any:
    scope = dict(source.names)
    exec(compile(source.text, f"<{structure.__name__} v{version}>", "exec"), scope)  # noqa: S102  # of declarations, never of input
    return scope["run"]
