"""The source code of decoding functions, for the module `compiler`."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.codec._function_source import FallBack, FunctionSource, Mark
from cloudevents_kafka.protocol.errors import Malformed, Truncated
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, LayoutField, LengthPrefixed, default_of
from cloudevents_kafka.protocol.schema import REST, STRING, Fixed, Structure, Uuid, Varint

_MAX_KEPT: Final = 64
"""The largest number of array elements for which a `struct.Struct` is cached."""


FALLBACKS: Final = (
    FallBack,  # a length or count is negative or too large
    IndexError,  # ``data[at]`` is beyond the end
    struct.error,  # ``unpack_from`` is beyond the end
    UnicodeDecodeError,  # a string is not UTF-8
    Malformed,  # from `varint` and the decoding of tagged fields
    Truncated,
)
"""The errors that generated code raises for bytes that the module `interpreter` must decode instead."""


def decoder_source(layout: Layout) -> FunctionSource:
    """Return the code of ``run(data, at, left)``, which returns a structure and the index after it.

    ``left`` is the memory in bytes that the elements of the structure's arrays may take. If ``run`` raises
    `FallBack`, this exception contains the result of `_Builder.marks`.
    """
    source = _Builder("def run(data, at, left=MEMORY):")
    source.add("size = len(data)")
    with source.block("try:"):
        result = source.structure(layout)
        # A slice that goes beyond the end is too short and raises no error, so check the index.
        source.fall_back("if at > size:")
        source.add(f"return {result}, at")
    with source.block("except FALLBACKS:"):
        source.add("raise FallBack(marks(locals())) from None")
    return source


class _Unpackers(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """A cache of functions that unpack several values of fixed width; the key is the number of values."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code: Final = code

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        unpack = struct.Struct(f">{count}{self._code}").unpack_from
        if count <= _MAX_KEPT:
            self[count] = unpack
        return unpack


class _Length(NamedTuple):
    """The expression of a decoded length or count: a variable minus ``more`` (1 for compact lengths)."""

    variable: str
    more: int

    def __str__(self) -> str:
        return f"{self.variable} - {self.more}" if self.more else self.variable


class _Builder(FunctionSource):
    def __init__(self, signature: str) -> None:
        super().__init__(signature)
        self.names |= {
            "FALLBACKS": FALLBACKS,
            "MEMORY": interpreter.MEMORY,
            "marks": self.marks,
            "UUID": uuid.UUID,
            "decode_length": varint.decode_length,
            "decode_tags": decode_tags,
        }
        # The variables and format characters of adjacent fields of fixed width, not unpacked yet.
        self.pending: list[tuple[str, str]] = []
        # The arrays, and the variables with the number, index and memory limit of each array's last element.
        self.loops: list[tuple[Array, str, str, str]] = []

    def structure(self, layout: Layout) -> str:
        values = {field.name: self.default(default_of(field)) for field in layout.absent}
        for number, field in enumerate(layout.fields):
            if number >= layout.optional_from:
                values[field.name] = self.optional(field)
            else:
                values[field.name] = self.value(field.codec)
        values |= {field.name: self.default(default_of(field.declared)) for field in layout.tagged.values()}
        tags = self.next_byte() if layout.flexible else None
        self.flush()
        # msgspec looks keywords up one by one: pass all of them, in the order of declaration.
        values["unknown_tags"] = "()"
        arguments = ", ".join(f"{name}={values[name]}" for name in layout.structure.__struct_fields__)
        result = self.new_variable("s")
        self.add(f"{result} = {self.global_name(layout.structure, 'S')}({arguments})")
        if tags is not None:
            with self.block(f"if {tags}:"):
                layout_name = self.global_name(layout, "L")
                self.add(f"at, left = decode_tags({layout_name}, {result}, data, at - 1, left)")
        return result

    def default(self, value: Any) -> str:
        if value in ([], None, "", b"", 0) and not isinstance(value, float):
            return repr(value)
        if isinstance(value, Structure):
            arguments = (f"{name}={self.default(getattr(value, name))}" for name in value.__struct_fields__)
            return f"{self.global_name(type(value), 'S')}({', '.join(arguments)})"
        return self.global_name(value, "K")

    def optional(self, field: LayoutField) -> str:
        self.flush()
        variable = self.new_variable()
        with self.block("if at == size:"):
            self.add(f"{variable} = {self.default(default_of(field.declared))}")
        with self.block("else:"):
            value = self.value(field.codec)
            self.flush()
            self.add(f"{variable} = {value}")
        return variable

    def value(self, codec: Codec) -> str:
        """Add the lines that decode a value; return the value's expression, which is valid after `flush`."""
        if isinstance(codec, Fixed):
            return self.fixed(codec.code)
        if isinstance(codec, Uuid):
            return f"UUID(bytes={self.fixed('16s')})"
        if isinstance(codec, Layout):
            self.flush()
            return self.structure(codec)
        if isinstance(codec, Varint):
            return self.varint(codec)
        return self.array(codec) if isinstance(codec, Array) else self.sized(codec)

    def fixed(self, code: str) -> str:
        variable = self.new_variable()
        self.pending.append((variable, code))
        return variable

    def next_byte(self) -> str:
        """Add lines that unpack the collected fields and the next byte; return the variable of this byte."""
        variable = self.fixed("B")
        if len(self.pending) > 1:
            self.flush()
        else:
            self.pending.clear()
            self.add(f"{variable} = data[at]")
            self.add("at += 1")
        return variable

    def flush(self) -> None:
        """Add a line that unpacks the collected fixed-width fields in one call."""
        if not self.pending:
            return
        codes = "".join(code for _, code in self.pending)
        variables = "".join(f"{variable}, " for variable, _ in self.pending)
        self.add(f"{variables.rstrip()} = {self.struct(codes, 'unpack_from')}(data, at)")
        self.add(f"at += {struct.calcsize('>' + codes)}")
        self.pending.clear()

    def varint(self, codec: Varint) -> str:
        self.flush()
        decode = varint.decode_signed if codec.signed else varint.decode_unsigned
        variable = self.new_variable()
        with self.block("if data[at] < 128:"):
            self.add(f"{variable} = data[at]")
            if codec.signed:
                self.add(f"{variable} = ({variable} >> 1) ^ -({variable} & 1)")
            self.add("at += 1")
        with self.block("else:"):
            self.add(f"{variable}, at = {self.global_name(decode, 'decode')}(data, at, {codec.bits})")
        return variable

    def length(self, codec: LengthPrefixed | Array) -> _Length:
        if not codec.compact:
            variable = self.fixed("h" if codec.short else "i")
            self.flush()
            return _Length(variable, 0)
        variable = self.next_byte()
        with self.block(f"if {variable} > 127:"):
            self.add(f"{variable}, at = decode_length(data, at - 1)")
        return _Length(variable, 1)

    def sized(self, codec: LengthPrefixed) -> str:
        if codec.type is REST:
            self.flush()
            self.add(f"{(variable := self.new_variable())} = data[at:]; at = max(at, size)")
            return variable
        length = self.length(codec)
        end, variable = self.new_variable("e"), self.new_variable()
        with self.block(f"if {length.variable} >= {length.more}:"):
            self.add(f"{end} = at + {length}")
            self.add(f"{variable} = data[at:{end}]{'.decode()' * (codec.type is STRING)}")
            self.add(f"at = {end}")
        self.null(length, variable, nullable=codec.nullable)
        return variable

    def null(self, length: _Length, variable: str, *, nullable: bool) -> None:
        if nullable:
            with self.block(f"elif {length.variable} == {length.more - 1}:"):
                self.add(f"{variable} = None")
        self.fall_back("else:")

    def array(self, codec: Array) -> str:
        count = self.length(codec)
        variable = self.new_variable("a")
        with self.block(f"if {count.variable} > {count.more}:"):
            # Check the count before memory is allocated.
            self.add(f"left -= {codec.memory} * ({count})")
            self.fall_back(f"if left < 0 or {codec.least} * ({count}) > size - at:")
            self.elements(codec, count, variable)
        with self.block(f"elif {count.variable} == {count.more}:"):
            self.add(f"{variable} = []")
        self.null(count, variable, nullable=codec.nullable)
        return variable

    def elements(self, array: Array, count: _Length, variable: str) -> None:
        element = array.element
        if isinstance(element, Fixed):
            unpack = f"unpack_{element.code.replace('?', '_')}"
            self.names.setdefault(unpack, _Unpackers(element.code))
            self.add(f"{variable} = [*{unpack}[{count}](data, at)]")
            self.add(f"at += {element.size} * ({count})")
            return
        self.add(f"{variable} = []")
        append, number, index, left = (self.new_variable(name) for name in ("add", "n", "i", "m"))
        self.loops.append((array, number, index, left))
        self.add(f"{append} = {variable}.append")
        with self.block(f"for {number} in range({count}):"):
            self.add(f"{index} = at; {left} = left")
            value = self.value(element)
            self.flush()
            # Otherwise the mark of the next element would be beyond the end.
            self.fall_back("if at > size:")
            self.add(f"{append}({value})")

    def marks(self, variables: Mapping[str, Any]) -> list[Mark]:
        """For each array, return the position of the last element that ``run`` has begun to decode.

        ``variables`` are the local variables of ``run``.
        """
        return [
            Mark(array, *(variables[name] for name in names))
            for array, *names in self.loops
            if names[-1] in variables
        ]


def decode_tags(layout: Layout, structure: Structure, data: bytes, at: int, left: int) -> tuple[int, int]:
    """Decode and set a structure's tagged fields; return the index after them, and the remaining memory."""
    found, at, left = interpreter.decode_tags(layout, data, at, left)
    for name, value in found.items():
        setattr(structure, name, value)
    return at, left
