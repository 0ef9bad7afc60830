"""Changes a table and new rows so that both have the same columns and fields; no value changes.

If the table does not have a field that the new rows have, the field is added to the table. If the new rows do
not have a field that the table has, the field is null in the new rows. If a number has a narrower type in the
new rows than in the table, the rows are converted to the type in the table. If a number has a wider type in
the new rows than in the table, the type in the table is changed, provided that the table format supports this
change. Any other difference of types would change values, so a field with such a difference does not match
the table. A field also does not match if its name differs from a name in the table only in case, because
Spark treats both names as the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from cloudevents_kafka.spark._names import PREFIX
from cloudevents_kafka.spark._sql import literal, quote

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

# Types of numbers. Each type can represent all numbers of the types before it in the same list.
_WIDER: Final = (["tinyint", "smallint", "int", "bigint"], ["float", "double"])


class Difference(NamedTuple):
    """A difference between a table and new rows in the type of one column or field.

    ``kind`` is "new" if the table does not have the field, and "wider" if the table needs a wider number type
    for the field. ``kind`` is "case" if the names of the field differ only in case, and "misfit" if the
    values of the rows do not fit the type in the table.
    """

    kind: Literal["new", "wider", "misfit", "case"]
    path: tuple[str, ...]
    type: DataType
    found: DataType | None = None
    """The type in the table, if the table has the field."""

    known: str = ""
    """The name in the table, if this name and the name in the rows differ only in case."""

    def sql(self, table: str) -> str:
        """Return the SQL statement that changes the table as this difference requires."""
        name, type_ = quote(*self.path), type_sql(self.type)
        change = (
            f"ADD COLUMNS ({name} {type_})" if self.kind == "new" else f"ALTER COLUMN {name} TYPE {type_}"
        )
        return f"ALTER TABLE {table} {change}"


def differences(table: DataType, rows: DataType, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Yield the differences between the types in a table and the types in rows.

    A change of the table can remove differences of the kinds "new" and "wider", but no other differences.
    """
    found, wanted = _children(table), _children(rows)
    if type(table) is type(rows) and wanted:
        names = {name.lower(): name for name in found}
        for name, type_ in wanted.items():
            if name in found:
                yield from differences(found[name], type_, (*path, name))
            elif name.lower() in names:
                yield Difference("case", (*path, name), type_, known=names[name.lower()])
            else:
                yield Difference("new", (*path, name), type_)
    elif _is_wider(rows, table):
        yield Difference("wider", path, rows, table)
    elif not _is_wider(table, rows) and table.simpleString() != rows.simpleString():
        yield Difference("misfit", path, rows, table)


def names_in(type_: DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all fields inside a type."""
    for name, child in _children(type_).items():
        yield (*path, name)
        yield from names_in(child, (*path, name))


def two_cases(paths: Iterable[tuple[str, ...]]) -> tuple[str, str] | None:
    """Return the paths of two fields of one struct whose names differ only in case, or None."""
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for path in paths:
        other = seen.setdefault((*path[:-1], path[-1].lower()), path)
        if other != path:
            return ".".join(other), ".".join(path)
    return None


def aligned(value: str, rows: DataType, table: DataType, depth: int = 0) -> str:
    """Return SQL that converts a value of the rows to the type of the table.

    The type of the table must have all fields that the value has.
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if rows.simpleString() == table.simpleString():
        return value
    each, more = f"{PREFIX}x{depth}", depth + 1
    if isinstance(rows, StructType) and isinstance(table, StructType):
        fields = (
            f"{literal(field.name)}, "
            + aligned(f"{value}.{quote(field.name)}", rows[field.name].dataType, field.dataType, depth)
            if field.name in rows.names
            else f"{literal(field.name)}, CAST(NULL AS {type_sql(field.dataType)})"
            for field in table.fields
        )
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
    if isinstance(rows, ArrayType) and isinstance(table, ArrayType):
        return f"transform({value}, {each} -> {aligned(each, rows.elementType, table.elementType, more)})"
    if isinstance(rows, MapType) and isinstance(table, MapType):
        inner = aligned(each, rows.valueType, table.valueType, more)
        return f"transform_values({value}, ({PREFIX}k{depth}, {each}) -> {inner})"
    return f"CAST({value} AS {type_sql(table)})"


def type_sql(type_: DataType) -> str:
    """Return a type as SQL; the names of fields in the type may contain any characters."""
    from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

    if isinstance(type_, TimestampType):
        return "timestamp_ltz"  # a setting of the session decides which type the word timestamp means
    if isinstance(type_, StructType):
        return f"struct<{', '.join(f'{quote(f.name)}: {type_sql(f.dataType)}' for f in type_.fields)}>"
    if isinstance(type_, ArrayType):
        return f"array<{type_sql(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"map<{type_sql(type_.keyType)}, {type_sql(type_.valueType)}>"
    name: str = type_.simpleString()
    return name


def _children(type_: DataType) -> Mapping[str, DataType]:
    """Return the types directly inside a struct, array or map, with their names in SQL."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, StructType):
        return {field.name: field.dataType for field in type_.fields}
    if isinstance(type_, ArrayType):
        return {"element": type_.elementType}
    if isinstance(type_, MapType):
        return {"key": type_.keyType, "value": type_.valueType}
    return {}


def _is_wider(wide: DataType, narrow: DataType) -> bool:
    """Return whether the type ``wide`` has all numbers of the type ``narrow``, and additional numbers."""
    from pyspark.sql.types import DecimalType

    if isinstance(wide, DecimalType) and isinstance(narrow, DecimalType):
        return bool(wide.scale == narrow.scale and wide.precision > narrow.precision)
    one, other = wide.simpleString(), narrow.simpleString()
    return any(one in order and other in order and order.index(one) > order.index(other) for order in _WIDER)
