"""Encoding and decoding with functions that are generated, one for each layout.

A generated function is straight code: adjacent fields of fixed width are decoded or encoded by one call of
`struct`, and structures in arrays are decoded inline. The function makes only the checks that bound its work
and memory. For anything else, the function falls back to the interpreter, which locates the error in the same
bytes or message. In arrays, the interpreter begins at the last element, so that an invalid frame costs no
more than a valid frame. Only the errors in `FALLBACKS` and `_ENCODE_FALLBACKS` lead to the interpreter; any
other error of generated code is a bug, and propagates.
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

    Raises `Unsupported`, `Malformed` and `Truncated`. ``memory`` is passed to `interpreter.decode` as its
    limit.
    """
    run = decoder(structure, version)
    try:
        return run(data, at, memory)
    except FALLBACKS as error:
        marks = error.marks if isinstance(error, FallBack) else ()
    # Here the exception has been freed, and with it the decoded part.
    layout = layout_of(structure, version)
    if marks:
        interpreter.decode(layout, data, at, memory=memory, marks=marks)
    return interpreter.decode(layout, data, at, memory=memory)


def encode(value: Structure, version: int) -> bytes:
    """Return the bytes of a message.

    Raises `Unsupported`, and `Unencodable` if a value does not fit its field or the version cannot carry the
    value.
    """
    run = encoder(type(value), version)
    try:
        return run(value)
    except _ENCODE_FALLBACKS:
        return interpreter.encode(layout_of(type(value), version), value)
    except TypeError:
        # The ``__index__`` of a value may raise it, as that of an array does: then this raises `Unencodable`.
        interpreter.encode(layout_of(type(value), version), value)
        raise


@cache
def decoder(structure: type[Structure], version: int) -> Decoder:
    """Return the decoding function of a version, which is compiled on first use.

    The function itself never falls back to the interpreter.
    """
    run: Decoder = _compiled(decoder_source(layout_of(structure, version)), structure, version)
    return run


@cache
def encoder(structure: type[Structure], version: int) -> Encoder:
    """Return the encoding function of a version, which is compiled on first use.

    The function itself never falls back to the interpreter.
    """
    run: Encoder = _compiled(encoder_source(layout_of(structure, version)), structure, version)
    return run


def _compiled(source: FunctionSource, structure: type[Structure], version: int) -> Any:
    scope = dict(source.names)
    exec(compile(source.text, f"<{structure.__name__} v{version}>", "exec"), scope)  # noqa: S102  # of declarations, never of input
    return scope["run"]
