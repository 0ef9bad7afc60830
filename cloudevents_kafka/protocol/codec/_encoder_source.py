"""The source of encoding functions, for `compiler`."""

from __future__ import annotations

import struct
import uuid
from typing import Final

from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.codec._function_source import FunctionSource
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, Sized, default_of
from cloudevents_kafka.protocol.schema import BOOLEAN, REST, STRING, Fixed, Uuid, Varint


def encoder_source(layout: Layout) -> FunctionSource:
    """Return the source of ``run(s)``, which returns the bytes of a structure."""
    builder = _Builder()
    code = builder.code
    code.add("out = bytearray()")
    builder.structure(layout, "s")
    builder.flush()
    code.add("return bytes(out)")
    return code


class _Builder:
    def __init__(self) -> None:
        self.code: Final = FunctionSource("def run(s):")
        self.code.names |= {
            "pack": struct.pack,
            "encode_length": varint.encode_unsigned,
            "encode_tags": interpreter.encode_tags,
        }
        # The expressions and format characters of adjacent fields of fixed width, not packed yet.
        self.pending: list[tuple[str, str]] = []

    def structure(self, layout: Layout, value: str) -> None:
        self.check_class(value, self.code.refer(layout.structure, "S"))
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
        """Encode no tagged fields, the usual case, inline."""
        self.flush()
        conditions = [f"{value}.unknown_tags != ()"]
        for slot in layout.tagged.values():
            default = default_of(slot.field)
            name = self.code.refer(default, "K") if default else repr(default)
            conditions.append(f"{value}.{slot.name} != {name}")
        with self.code.block(f"if {' or '.join(conditions)}:"):
            self.code.add(f"encode_tags({self.code.refer(layout, 'L')}, {value}, out)")
        with self.code.block("else:"):
            self.code.add("out.append(0)")

    def value(self, codec: Codec, value: str) -> None:
        if isinstance(codec, Fixed):
            if codec is BOOLEAN:  # struct packs the truth of any object
                self.check_class(value, "bool")
            self.pending.append((value, codec.code))
        elif isinstance(codec, Uuid):
            self.uuid(value)
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
        """Pack the pending fields in one call."""
        if self.pending:
            codes = "".join(code for _, code in self.pending)
            values = ", ".join(value for value, _ in self.pending)
            self.code.add(f"out += {self.code.struct(codes, 'pack')}({values})")
            self.pending.clear()

    def check_class(self, value: str, name: str) -> None:
        """Fall back for a value of another class, such as a subclass."""
        with self.code.block(f"if {value}.__class__ is not {name}:"):
            self.code.add("raise FallBack")

    def uuid(self, value: str) -> None:
        variable = self.code.fresh()
        self.code.add(f"{variable} = {value}")
        self.check_class(variable, self.code.refer(uuid.UUID, "UUID"))
        self.pending.append((f"{variable}.bytes", "16s"))

    def varint(self, codec: Varint, value: str) -> None:
        self.flush()
        self.check_class(value, "int")
        encode = varint.encode_signed if codec.signed else varint.encode_unsigned
        self.code.add(f"out += {self.code.refer(encode, 'encode')}({value}, {codec.bits})")

    def length(self, length: str, compact: bool, code: str) -> None:  # noqa: FBT001  # of the codec
        if not compact:
            self.pending.append((length, code))
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
        self.check_class(raw, "str" if text else "bytes")
        if text:
            self.code.add(f"{raw} = {raw}.encode()")
        self.code.add(f"{length} = len({raw})")

    def array(self, codec: Array, value: str) -> None:
        values, length = self.code.fresh("a"), self.code.fresh("n")
        self.code.add(f"{values} = {value}")
        head = "if"
        if codec.nullable:
            with self.code.block(f"if {values} is None:"):
                self.code.add(f"{values} = (); {length} = -1")
            head = "elif"
        # A string or a set has a length and elements, too.
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
