"""The source of writing functions (`compiled`)."""

from __future__ import annotations

import struct
from typing import Final

from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.codec._source_builder import Code
from cloudevents_kafka.protocol.schema import (
    BOOLEAN,
    REST,
    STRING,
    Array,
    Codec,
    Fixed,
    Layout,
    Sized,
    Uuid,
    Varint,
    default_of,
)


def source(layout: Layout) -> Code:
    """Write ``run(s)``, which gives the bytes of a structure."""
    writer = _Writer()
    code = writer.code
    code.add("out = bytearray()")
    writer.structure(layout, "s")
    writer.flush()
    code.add("return bytes(out)")
    return code


class _Writer:
    def __init__(self) -> None:
        self.code: Final = Code("def run(s):")
        self.code.names |= {
            "pack": struct.pack,
            "encode_length": varint.encode_unsigned,
            "write_tags": interpreter.write_tags,
        }
        # Neighbours of fixed width that are not written yet: their expressions and codes.
        self.run: list[tuple[str, str]] = []

    def structure(self, layout: Layout, value: str) -> None:
        kind = self.code.refer(layout.structure, "S")
        with self.code.block(f"if {value}.__class__ is not {kind}:"):
            self.code.add("raise FallBack")
        for field in layout.absent:
            if not field.wire.ignorable:
                default = default_of(field)
                name = self.code.refer(default, "K") if default else repr(default)
                with self.code.block(f"if {value}.{field.name} != {name}:"):
                    self.code.add("raise FallBack")
        for slot in layout.slots:
            self.value(slot.codec, f"{value}.{slot.name}")
        if layout.flexible:
            self.tags(layout, value)
        else:
            with self.code.block(f"if {value}.unknown_tags != ():"):
                self.code.add("raise FallBack")

    def tags(self, layout: Layout, value: str) -> None:
        """Write a count of no tags, as is usual, in line."""
        self.flush()
        given = [f"{value}.unknown_tags != ()"]
        for slot in layout.tagged.values():
            default = default_of(slot.field)
            name = self.code.refer(default, "K") if default else repr(default)
            given.append(f"{value}.{slot.name} != {name}")
        with self.code.block(f"if {' or '.join(given)}:"):
            self.code.add(f"write_tags({self.code.refer(layout, 'L')}, {value}, out)")
        with self.code.block("else:"):
            self.code.add("out.append(0)")

    def value(self, codec: Codec, value: str) -> None:
        if isinstance(codec, Fixed):
            if codec is BOOLEAN:  # to struct, anything is true or false
                with self.code.block(f"if {value}.__class__ is not bool:"):
                    self.code.add("raise FallBack")
            self.run.append((value, codec.code))
        elif isinstance(codec, Uuid):
            self.run.append((f"{value}.bytes", "16s"))
        elif isinstance(codec, Layout):
            variable = self.code.fresh("s")
            self.flush()
            self.code.add(f"{variable} = {value}")
            self.structure(codec, variable)
        elif isinstance(codec, Varint):
            self.varint(codec, value)
        elif isinstance(codec, Array):
            self.array(codec, value)
        else:
            self.sized(codec, value)

    def flush(self) -> None:
        """Write the neighbours of fixed width in one go."""
        if self.run:
            codes = "".join(code for _, code in self.run)
            values = ", ".join(value for value, _ in self.run)
            self.code.add(f"out += {self.code.struct(codes, 'pack')}({values})")
            self.run.clear()

    def varint(self, codec: Varint, value: str) -> None:
        self.flush()
        encode = varint.encode_signed if codec.signed else varint.encode_unsigned
        self.code.add(f"out += {self.code.refer(encode, 'encode')}({value}, {codec.bits})")

    def length(self, length: str, compact: bool, code: str) -> None:  # noqa: FBT001  # of the codec
        if not compact:
            self.run.append((length, code))
            self.flush()
            return
        self.flush()
        with self.code.block(f"if {length} < 127:"):
            self.code.add(f"out.append({length} + 1)")
        with self.code.block("else:"):
            self.code.add(f"out += encode_length({length} + 1)")

    def sized(self, codec: Sized, value: str) -> None:
        raw, length = self.code.fresh("b"), self.code.fresh("n")
        text = codec.type is STRING
        self.code.add(f"{raw} = {value}")
        if codec.nullable:
            with self.code.block(f"if {raw} is None:"):
                self.code.add(f'{raw} = b""; {length} = -1')
            with self.code.block("else:"):
                self.raw(raw, length, text=text)
        else:
            self.raw(raw, length, text=text)
        if codec.type is REST:
            self.flush()
        else:
            self.length(length, codec.compact, "h" if text else "i")
        self.code.add(f"out += {raw}")

    def raw(self, raw: str, length: str, *, text: bool) -> None:
        if text:
            self.code.add(f"{raw} = {raw}.encode()")
        else:
            with self.code.block(f"if {raw}.__class__ is not bytes:"):
                self.code.add("raise FallBack")
        self.code.add(f"{length} = len({raw})")

    def array(self, codec: Array, value: str) -> None:
        values, length = self.code.fresh("a"), self.code.fresh("n")
        self.code.add(f"{values} = {value}")
        head = "if"
        if codec.nullable:
            with self.code.block(f"if {values} is None:"):
                self.code.add(f"{values} = (); {length} = -1")
            head = "elif"
        # A text or a set has a length and elements as well, and would go through unseen.
        with self.code.block(f"{head} {values}.__class__ is list or {values}.__class__ is tuple:"):
            self.code.add(f"{length} = len({values})")
        with self.code.block("else:"):
            self.code.add("raise FallBack")
        self.length(length, codec.compact, "h" if codec.short else "i")
        self.elements(codec.element, values)

    def elements(self, element: Codec, values: str) -> None:
        if isinstance(element, Fixed) and element is not BOOLEAN:
            self.code.add(f'out += pack(f">{{len({values})}}{element.code}", *{values})')
            return
        one = self.code.fresh("s")
        with self.code.block(f"for {one} in {values}:"):
            self.value(element, one)
            self.flush()
