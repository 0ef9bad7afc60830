"""The source of decoding functions, for `compiler`."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.codec._function_source import FunctionSource
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, Sized, Slot, default_of
from cloudevents_kafka.protocol.schema import REST, STRING, Fixed, Structure, Uuid, Varint

_MAX_KEPT: Final = 64
"""The largest number of array elements whose `struct.Struct` is kept."""


def decoder_source(layout: Layout) -> FunctionSource:
    """Return the source of ``run(data, at)``, which returns a structure and the index after it."""
    builder = _Builder()
    code = builder.code
    code.add("size = len(data)")
    result = builder.structure(layout)
    # A slice beyond the end is short and raises nothing; the index shows it.
    with code.block("if at > size:"):
        code.add("raise FallBack")
    code.add(f"return {result}, at")
    return code


class _Unpackers(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """The functions that unpack a number of values of fixed width, by that number."""

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


class _Builder:
    def __init__(self) -> None:
        self.code: Final = FunctionSource("def run(data, at):")
        self.code.names |= {
            "UUID": uuid.UUID,
            "decode_length": varint.decode_length,
            "decode_tags": decode_tags,
        }
        # The variables and format characters of adjacent fields of fixed width, not unpacked yet.
        self.pending: list[tuple[str, str]] = []

    def structure(self, layout: Layout) -> str:
        values = {field.name: self.default(default_of(field)) for field in layout.absent}
        for number, slot in enumerate(layout.slots):
            if number >= layout.optional_from:
                values[slot.name] = self.optional(slot)
            else:
                values[slot.name] = self.value(slot.codec)
        values |= {slot.name: self.default(default_of(slot.field)) for slot in layout.tagged.values()}
        tags = self.next_byte() if layout.flexible else None
        self.flush()
        # msgspec looks keywords up one by one: pass all of them, in the order of declaration.
        values["unknown_tags"] = "()"
        arguments = ", ".join(f"{name}={values[name]}" for name in layout.structure.__struct_fields__)
        result = self.code.fresh("s")
        self.code.add(f"{result} = {self.code.refer(layout.structure, 'S')}({arguments})")
        if tags is not None:
            with self.code.block(f"if {tags}:"):
                self.code.add(f"at = decode_tags({self.code.refer(layout, 'L')}, {result}, data, at - 1)")
        return result

    def default(self, value: Any) -> str:
        if value in ([], None, "", b"", 0) and not isinstance(value, float):
            return repr(value)
        if isinstance(value, Structure):
            arguments = (f"{name}={self.default(getattr(value, name))}" for name in value.__struct_fields__)
            return f"{self.code.refer(type(value), 'S')}({', '.join(arguments)})"
        return self.code.refer(value, "K")

    def optional(self, slot: Slot) -> str:
        self.flush()
        variable = self.code.fresh()
        with self.code.block("if at == size:"):
            self.code.add(f"{variable} = {self.default(default_of(slot.field))}")
        with self.code.block("else:"):
            value = self.value(slot.codec)
            self.flush()
            self.code.add(f"{variable} = {value}")
        return variable

    def value(self, codec: Codec) -> str:
        """Add the lines that decode a value; return its expression, which is valid after `flush`."""
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
        variable = self.code.fresh()
        self.pending.append((variable, code))
        return variable

    def next_byte(self) -> str:
        """Unpack a byte and the pending fields before it; return the byte's variable."""
        variable = self.fixed("B")
        if len(self.pending) > 1:
            self.flush()
        else:
            self.pending.clear()
            self.code.add(f"{variable} = data[at]")
            self.code.add("at += 1")
        return variable

    def flush(self) -> None:
        """Unpack the pending fields in one call."""
        if not self.pending:
            return
        codes = "".join(code for _, code in self.pending)
        variables = "".join(f"{variable}, " for variable, _ in self.pending)
        self.code.add(f"{variables.rstrip()} = {self.code.struct(codes, 'unpack_from')}(data, at)")
        self.code.add(f"at += {struct.calcsize('>' + codes)}")
        self.pending.clear()

    def varint(self, codec: Varint) -> str:
        self.flush()
        decode = varint.decode_signed if codec.signed else varint.decode_unsigned
        variable = self.code.fresh()
        with self.code.block("if data[at] < 128:"):
            self.code.add(f"{variable} = data[at]")
            if codec.signed:
                self.code.add(f"{variable} = ({variable} >> 1) ^ -({variable} & 1)")
            self.code.add("at += 1")
        with self.code.block("else:"):
            self.code.add(f"{variable}, at = {self.code.refer(decode, 'decode')}(data, at, {codec.bits})")
        return variable

    def length(self, *, compact: bool, code: str) -> _Length:
        if not compact:
            variable = self.fixed(code)
            self.flush()
            return _Length(variable, 0)
        variable = self.next_byte()
        with self.code.block(f"if {variable} > 127:"):
            self.code.add(f"{variable}, at = decode_length(data, at - 1)")
        return _Length(variable, 1)

    def sized(self, codec: Sized) -> str:
        if codec.type is REST:
            return self.rest()
        length = self.length(compact=codec.compact, code="h" if codec.type is STRING else "i")
        end, variable = self.code.fresh("e"), self.code.fresh()
        with self.code.block(f"if {length.variable} >= {length.more}:"):
            self.code.add(f"{end} = at + {length}")
            self.code.add(f"{variable} = data[at:{end}]{'.decode()' * (codec.type is STRING)}")
            self.code.add(f"at = {end}")
        self.null(length, variable, nullable=codec.nullable)
        return variable

    def rest(self) -> str:
        self.flush()
        variable = self.code.fresh()
        self.code.add(f"{variable} = data[at:]; at = max(at, size)")
        return variable

    def null(self, length: _Length, variable: str, *, nullable: bool) -> None:
        if nullable:
            with self.code.block(f"elif {length.variable} == {length.more - 1}:"):
                self.code.add(f"{variable} = None")
        with self.code.block("else:"):
            self.code.add("raise FallBack")

    def array(self, codec: Array) -> str:
        count = self.length(compact=codec.compact, code="h" if codec.short else "i")
        variable = self.code.fresh("a")
        with self.code.block(f"if {count.variable} > {count.more}:"):
            self.check(count)
            self.elements(codec.element, count, variable)
        with self.code.block(f"elif {count.variable} == {count.more}:"):
            self.code.add(f"{variable} = []")
        self.null(count, variable, nullable=codec.nullable)
        return variable

    def check(self, count: _Length) -> None:
        """Fall back if fewer bytes are left than elements, before anything is allocated."""
        with self.code.block(f"if {count} > size - at:"):
            self.code.add("raise FallBack")

    def elements(self, element: Codec, count: _Length, variable: str) -> None:
        if isinstance(element, Fixed):
            unpack = f"unpack_{element.code.replace('?', '_')}"
            self.code.names.setdefault(unpack, _Unpackers(element.code))
            self.code.add(f"{variable} = [*{unpack}[{count}](data, at)]")
            self.code.add(f"at += {element.size} * ({count})")
            return
        self.code.add(f"{variable} = []")
        append = self.code.fresh("add")
        self.code.add(f"{append} = {variable}.append")
        with self.code.block(f"for _ in range({count}):"):
            value = self.value(element)
            self.flush()
            self.code.add(f"{append}({value})")


def decode_tags(layout: Layout, structure: Structure, data: bytes, at: int) -> int:
    """Set the tagged fields of a structure, which are few and rare; return the index after them."""
    found, at = interpreter.decode_tags(layout, data, at)
    for name, value in found.items():
        setattr(structure, name, value)
    return at
