"""`Shape` is the type of a JSON value that Spark can represent; `TYPES` is the table of all types.

A `Shape` can be written in three forms: DDL for Spark, words for the Java function, and JSON for the files
that a pipeline writes to ``OUT/_batches``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec


class TypeRow(NamedTuple):
    """A type of Spark, and the corresponding types in JSON Schema, Avro and Python.

    ``json`` contains the name of the type in JSON Schema, and its format or encoding.
    """

    spark: str
    must_be: str
    json: tuple[str, str | None] | None
    avro: str
    python: str
    word: str = ""
    """The name of the type in the text for the Java function."""


TYPES: Final = (
    TypeRow("STRING", "a text", ("string", None), "string, enum, uuid", "str, UUID, Enum of texts", "s"),
    TypeRow("BOOLEAN", "a boolean", ("boolean", None), "boolean", "bool", "b"),
    TypeRow("BIGINT", "an integer of 64 bits", ("integer", None), "long", "int", "i 8"),
    TypeRow("INT", "an integer of 32 bits", None, "int", "", "i 4"),
    TypeRow("SMALLINT", "an integer of 16 bits", None, "", "", "i 2"),
    TypeRow("TINYINT", "an integer of 8 bits", None, "", "", "i 1"),
    TypeRow("DOUBLE", "a number", ("number", None), "double", "float", "d"),
    TypeRow("FLOAT", "a number of 32 bits", None, "float", "", "f"),
    TypeRow("DECIMAL(38,18)", "a decimal", ("string", "decimal"), "decimal", "Decimal", "m 38 18"),
    TypeRow(
        "TIMESTAMP",
        "a time with an offset, to the microsecond",
        ("string", "date-time"),
        "timestamp-millis, timestamp-micros",
        "datetime with an offset",
        "t",
    ),
    TypeRow(
        "TIMESTAMP_NTZ",
        "a time without an offset, to the microsecond",
        None,
        "local-timestamp-millis, local-timestamp-micros",
        "",
        "l",
    ),
    TypeRow("DATE", "a date", ("string", "date"), "date", "date", "y"),
    TypeRow("BINARY", "base64", ("string", "base64"), "bytes, fixed", "bytes", "x"),
    TypeRow("ARRAY", "an array", ("array", None), "array", "list, set, frozenset", "["),
    TypeRow("MAP", "an object", ("object", "additionalProperties"), "map", "dict with keys of text", "<"),
    TypeRow("STRUCT", "an object", ("object", None), "record", "dataclass, Struct, model", "{"),
)
"""The table of all types; the converters use it, and a page of the documentation prints it."""

BY_NAME: Final = {row.spark: row for row in TYPES}
BY_JSON: Final = {row.json: row.spark for row in TYPES if row.json}
_DECIMAL: Final = "DECIMAL("
VALUE: Final = "value"
"""The name of the column of values."""
RESCUED: Final = "_rescued"
"""The field for two kinds of members: members that the schema does not have, and members that do not fit."""
RESERVED: Final = (RESCUED, "__ce_corrupt")
"""The names that members of a schema must not have, in any mix of upper and lower case."""


class Shape(msgspec.Struct, frozen=True, omit_defaults=True):
    """The type of a JSON value. ``spark`` is a name in `TYPES`, such as ``BIGINT`` or ``DECIMAL(10,2)``.

    ``item`` is the shape of the items of an array or the values of a map. If only some texts are allowed as
    values, ``values`` contains these texts. If ``closed`` is true, the object must not have members that are
    not in ``members``.
    """

    spark: str
    nullable: bool = False
    item: Shape | None = None
    members: tuple[Member, ...] = ()
    closed: bool = False
    values: tuple[str, ...] = ()

    @property
    def must_be(self) -> str:
        """The rule that a value of this type must fulfill, as text."""
        if self.values:
            return "one of the texts of the schema"
        name = self.spark.partition("(")[0]
        return f"a decimal of {self.spark}" if name == "DECIMAL" else BY_NAME[name].must_be

    def decimal(self) -> tuple[int, int] | None:
        """Return the precision and the scale of a decimal, or None for other types."""
        if not self.spark.startswith(_DECIMAL):
            return None
        precision, scale = self.spark[len(_DECIMAL) : -1].split(",")
        return int(precision), int(scale)

    def ddl(self, *, rescue: bool = False, more: tuple[str, ...] = ()) -> str:
        """Return Spark's type as DDL.

        If ``rescue`` is true, a struct has a field for rescued members. For each name in ``more``, a struct
        has an additional field of type STRING.
        """
        if self.item is not None:
            key = "STRING, " if self.spark == "MAP" else ""
            return f"{self.spark}<{key}{self.item.ddl()}>"
        if self.spark != "STRUCT":
            # In DDL, the type TIMESTAMP depends on a setting of the session.
            return "TIMESTAMP_LTZ" if self.spark == "TIMESTAMP" else self.spark
        fields = [f"`{member.name.replace('`', '``')}`: {member.shape.ddl()}" for member in self.members]
        fields += [f"{name}: STRING" for name in ((RESCUED,) if rescue else ()) + more]
        return f"STRUCT<{', '.join(fields)}>"

    def words(self, *, closed: bool = False) -> Iterator[str]:
        """Yield the lines that describe this shape to ``java/JsonShape.java``.

        If ``closed`` is true, objects must not have members that the shape does not have.
        """
        flags = ("?" if self.nullable else "") + ("!" if closed or self.closed else "")
        if self.values:
            yield f"e{flags} {len(self.values)}"
            yield from (f"-{value}" for value in self.values)
        elif self.item is not None:
            yield BY_NAME[self.spark].word + flags
            yield from self.item.words(closed=closed)
        elif self.spark == "STRUCT":
            yield f"{{{flags} {len(self.members)}"
            for member in self.members:
                yield ("+" if member.required else "-") + member.name
                yield from member.shape.words(closed=closed)
        else:
            decimal = self.decimal()
            word = f"m {decimal[0]} {decimal[1]}" if decimal else BY_NAME[self.spark].word
            yield word[0] + flags + word[1:]


class Member(msgspec.Struct, frozen=True):
    """A member of a JSON object.

    If ``required`` is true, the member must be present in the object. The value of the member can be null if
    ``shape`` allows null.
    """

    name: str
    shape: Shape
    required: bool = False


def struct(members: tuple[Member, ...], where: str, *, nullable: bool = False, closed: bool = False) -> Shape:
    """Return the shape (the type) of an object; raise `ValueError` for names that Spark's fields cannot have.

    ``where`` is the JSON pointer of the object in the schema.
    """
    if not members:
        raise ValueError(f"the schema must have one member or more at {where or '/'}, got none")
    check_names([member.name for member in members], where)
    return Shape("STRUCT", nullable=nullable, members=members, closed=closed)


def check_names(names: Iterable[str], where: str) -> None:
    """Raise `ValueError` for names that Spark does not allow for the fields of one struct."""
    seen: dict[str, str] = {}
    for name in names:
        if not name.isprintable() or not name:
            raise ValueError(f"names of members must be printable, got {name!r} at {where or '/'}")
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise ValueError(
                f"names of members must differ in more than their case, got {other} and {name} at "
                f"{where or '/'}"
            )


def pointer(where: str, name: str | int) -> str:
    """Return the JSON pointer of a member or an item.

    ``where`` is the JSON pointer of the object or array that contains the member or the item.
    """
    return f"{where}/{str(name).replace('~', '~0').replace('/', '~1')}"


Where = tuple[Any, str | int] | None
"""The path of a value in data: the path of the surrounding value, and a name or an index.

Most paths are never converted to a text.
"""


def place(where: Where) -> str:
    """Return a path of names and indexes as a JSON pointer."""
    names = []
    while where is not None:
        where, name = where
        names.append(name)
    return "".join(pointer("", name) for name in reversed(names))
