"""The source code of encoding functions, for the module `compiler`."""

from __future__ import annotations

import struct
import uuid

from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.codec._function_source import FunctionSource
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, LengthPrefixed, default_of
from cloudevents_kafka.protocol.schema import BOOLEAN, REST, STRING, Field, Fixed, Uuid, Varint


def encoder_source(layout: Layout) -> FunctionSource:
    """Return the source code of ``run(s)``, which returns the bytes of a structure."""
    source = _Builder("def run(s):")
    source.add("out = bytearray()")
    source.structure(layout, "s")
    source.flush()
    source.add("return bytes(out)")
    return source


class _Builder(FunctionSource):
    def __init__(self, signature: str) -> None:
        super().__init__(signature)
        self.names |= {
            "pack": struct.pack,
            "encode_length": varint.encode_unsigned,
            "encode_tags": interpreter.encode_tags,
        }
        # The expressions and format characters of adjacent fields of fixed width, not packed yet.
        self.pending: list[tuple[str, str]] = []

    def structure(self, layout: Layout, value: str) -> None:
        self.check_class(value, self.global_name(layout.structure, "S"))
        for declared in layout.absent:
            if not declared.wire.ignorable:
                self.fall_back(f"if {self.differs(declared, value)}:")
        for field in layout.fields:
            self.value(field.codec, f"{value}.{field.name}")
        if layout.flexible:
            self.tags(layout, value)
        else:
            self.fall_back(f"if {value}.unknown_tags != ():")

    def differs(self, field: Field, value: str) -> str:
        """Return the source code that checks whether a field's value differs from the field's default."""
        default = default_of(field)
        return f"{value}.{field.name} != {self.global_name(default, 'K') if default else repr(default)}"

    def tags(self, layout: Layout, value: str) -> None:
        """Add lines that encode tagged fields; the lines call a function only if there are such fields."""
        self.flush()
        conditions = [
            f"{value}.unknown_tags != ()",
            *(self.differs(field.declared, value) for field in layout.tagged.values()),
        ]
        with self.block(f"if {' or '.join(conditions)}:"):
            self.add(f"encode_tags({self.global_name(layout, 'L')}, {value}, out)")
        with self.block("else:"):
            self.add("out.append(0)")

    def value(self, codec: Codec, value: str) -> None:
        if isinstance(codec, Fixed):
            if codec is BOOLEAN:  # struct packs any object as True or False
                self.check_class(value, "bool")
            self.pending.append((value, codec.code))
        elif isinstance(codec, Uuid):
            self.uuid(value)
        elif isinstance(codec, Layout):
            variable = self.new_variable("s")
            self.flush()
            self.add(f"{variable} = {value}")
            self.structure(codec, variable)
        elif isinstance(codec, Varint):
            self.varint(codec, value)
        elif isinstance(codec, Array):
            self.array(codec, value)
        else:
            self.sized(codec, value)

    def flush(self) -> None:
        """Add a line that packs the collected fixed-width fields in one call."""
        if self.pending:
            codes = "".join(code for _, code in self.pending)
            values = ", ".join(value for value, _ in self.pending)
            self.add(f"out += {self.struct(codes, 'pack')}({values})")
            self.pending.clear()

    def check_class(self, value: str, name: str) -> None:
        """Add lines that raise `FallBack` unless the value's class is exactly ``name``, not a subclass."""
        self.fall_back(f"if {value}.__class__ is not {name}:")

    def uuid(self, value: str) -> None:
        variable = self.new_variable()
        self.add(f"{variable} = {value}")
        self.check_class(variable, self.global_name(uuid.UUID, "UUID"))
        self.pending.append((f"{variable}.bytes", "16s"))

    def varint(self, codec: Varint, value: str) -> None:
        self.flush()
        self.check_class(value, "int")
        encode = varint.encode_signed if codec.signed else varint.encode_unsigned
        self.add(f"out += {self.global_name(encode, 'encode')}({value}, {codec.bits})")

    def length(self, codec: LengthPrefixed | Array, length: str) -> None:
        if not codec.compact:
            self.pending.append((length, "h" if codec.short else "i"))
            self.flush()
            return
        self.flush()
        with self.block(f"if {length} < 127:"):
            self.add(f"out.append({length} + 1)")
        with self.block("else:"):
            self.add(f"out += encode_length({length} + 1)")

    def sized(self, codec: LengthPrefixed, value: str) -> None:
        raw, length = self.new_variable("b"), self.new_variable("n")
        text = codec.type is STRING
        self.add(f"{raw} = {value}")
        if codec.nullable:
            with self.block(f"if {raw} is None:"):
                self.add(f'{raw} = b""; {length} = -1')
            with self.block("else:"):
                self.raw(raw, length, text=text)
        else:
            self.raw(raw, length, text=text)
        if codec.type is REST:
            self.flush()
        else:
            self.length(codec, length)
        self.add(f"out += {raw}")

    def raw(self, raw: str, length: str, *, text: bool) -> None:
        self.check_class(raw, "str" if text else "bytes")
        if text:
            self.add(f"{raw} = {raw}.encode()")
        self.add(f"{length} = len({raw})")

    def array(self, codec: Array, value: str) -> None:
        values, length = self.new_variable("a"), self.new_variable("n")
        self.add(f"{values} = {value}")
        head = "if"
        if codec.nullable:
            with self.block(f"if {values} is None:"):
                self.add(f"{values} = (); {length} = -1")
            head = "elif"
        # Check the class: a string or a set has a length and elements, too.
        with self.block(f"{head} {values}.__class__ is list or {values}.__class__ is tuple:"):
            self.add(f"{length} = len({values})")
        self.fall_back("else:")
        self.length(codec, length)
        self.elements(codec.element, values)

    def elements(self, element: Codec, values: str) -> None:
        if isinstance(element, Fixed) and element is not BOOLEAN:
            self.add(f'out += pack(f">{{len({values})}}{element.code}", *{values})')
            return
        one = self.new_variable("s")
        with self.block(f"for {one} in {values}:"):
            self.value(element, one)
            self.flush()
