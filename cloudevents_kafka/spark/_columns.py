"""Checks, before any job runs, the columns that a function reads from a DataFrame.

All problems are collected, so that one `ValueError` can report all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module
from pyspark.sql.types import ArrayType, BinaryType, DataType, NullType, StringType, StructField, StructType

from cloudevents_kafka.spark._names import PREFIX

_MAX_LENGTH: Final = 120  # characters of a type in a message


class ColumnType(NamedTuple):
    """The type that a column must have; a column that contains only nulls (``void``) is always accepted."""

    name: str
    accepts: Callable[[DataType], bool]
    advice: str


class InputColumns:
    """The columns of a DataFrame, and the problems that were found so far.

    Names of columns are compared by Spark's rules.
    """

    def __init__(self, df: DataFrame) -> None:
        # The schema and the setting are read only once: each read is a call of Java, or, with Spark Connect,
        # a message to the server.
        self._fields: list[StructField] = df.schema.fields
        self._case_sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
        self._missing: list[str] = []
        self._problems: list[str] = []

    def fold(self, name: str) -> str:
        """Return a normalized name, which is the same for all names that Spark treats as equal."""
        return name if self._case_sensitive else name.lower()

    def find(self, name: str, type_: ColumnType | None = None) -> StructField | None:
        """Return the column with this name, or None if there is no such column.

        Report a problem if the column has a wrong type, or if several columns have this name.
        """
        found = [field for field in self._fields if self.fold(field.name) == self.fold(name)]
        if len(found) > 1:
            self.report(f"{len(found)} columns are named {name}: rename or drop all but one")
        if found and type_ is not None:
            self.check_type(f"column {name}", found[0].dataType, type_)
        return found[0] if found else None

    def require(self, name: str, type_: ColumnType | None = None) -> StructField | None:
        """Return the column with this name, or None if there is no such column.

        Report a missing column, and the problems that `find` reports.
        """
        field = self.find(name, type_)
        if field is None:
            self._missing.append(name)
        return field

    def check_type(self, what: str, data_type: DataType, type_: ColumnType) -> None:
        """Report a problem if a value has a type other than ``type_``."""
        if not (isinstance(data_type, NullType) or type_.accepts(data_type)):
            self.report(f"{what} must be {type_.name}, got {_preview(data_type)}: {type_.advice}")

    def report(self, problem: str) -> None:
        """Add a problem to the list, unless the list contains it already."""
        if problem not in self._problems:
            self._problems.append(problem)

    def raise_problems(self, function: str, hints: dict[str, str]) -> None:
        """If there are problems, raise `ValueError` with all problems and the hints for missing columns."""
        problems = list(self._problems)
        if self._missing:
            names = ", ".join(field.name for field in self._fields)
            hint = "".join(f"; {text}" for name, text in hints.items() if name in self._missing)
            missing = ", ".join(dict.fromkeys(self._missing))
            problems.insert(0, f"the DataFrame has no column {missing}, only {names}{hint}")
        if problems:
            raise ValueError(f"{function}: {'; '.join(problems)}")


def _preview(data_type: DataType) -> str:
    text = data_type.simpleString()
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


def is_text(data_type: DataType) -> bool:
    """Return whether a type is one of Spark's string types, of any length and collation."""
    return isinstance(data_type, StringType) or data_type.typeName() in {"char", "varchar"}


def is_headers(data_type: DataType) -> bool:
    """Return whether a type is the type of Kafka's headers: ``array<struct<key:string,value:binary>>``."""
    header = data_type.elementType if isinstance(data_type, ArrayType) else None
    if not isinstance(header, StructType) or header.names != ["key", "value"]:
        return False
    return is_text(header[0].dataType) and isinstance(header[1].dataType, BinaryType)


def internal(name: str) -> Column:
    """Return the column whose name is `PREFIX` followed by ``name``."""
    return F.col(PREFIX + name)
