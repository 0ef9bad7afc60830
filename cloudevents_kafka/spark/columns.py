"""The columns that a function is given: found as Spark finds them, and checked before any job runs.

What is wrong is collected, so that one `ValueError` names all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, BinaryType, DataType, NullType, StringType, StructField, StructType

_LONGEST: Final = 120  # of a type, as it is shown


class Wanted(NamedTuple):
    """The type that a column must have; a column of nulls alone (``void``) has any."""

    type: str
    fits: Callable[[DataType], bool]
    advice: str


class Columns:
    """The columns of a DataFrame, and what is wrong with them so far."""

    def __init__(self, df: DataFrame) -> None:
        # Spark answers these by a call each; through Connect, by a message to the server.
        self._fields: list[StructField] = df.schema.fields
        sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
        self._sensitive = sensitive
        self._missing: list[str] = []
        self._problems: list[str] = []

    def fold(self, name: str) -> str:
        """Return what two names share that are one to Spark."""
        return name if self._sensitive else name.lower()

    def find(self, name: str) -> StructField | None:
        """Return the column of a name, None where there is none; two are a problem."""
        found = [field for field in self._fields if self.fold(field.name) == self.fold(name)]
        if len(found) > 1:
            self.report(f"{len(found)} columns are named {name}: rename or drop all but one")
        return found[0] if found else None

    def look_for(self, name: str, wanted: Wanted) -> StructField | None:
        """Return the column of a name if there is one; another type than wanted is a problem."""
        field = self.find(name)
        if field is not None:
            self.check_type(f"column {name}", field.dataType, wanted)
        return field

    def need(self, name: str, wanted: Wanted | None = None) -> StructField | None:
        """Return the column of a name; none, or one of another type than wanted, is a problem."""
        field = self.find(name) if wanted is None else self.look_for(name, wanted)
        if field is None:
            self._missing.append(name)
        return field

    def check_type(self, what: str, seen: DataType, wanted: Wanted) -> None:
        """Report what has not the type that is wanted."""
        if not (isinstance(seen, NullType) or wanted.fits(seen)):
            self.report(f"{what} is {_shown(seen)}, and must be {wanted.type}: {wanted.advice}")

    def report(self, problem: str) -> None:
        """Add a problem, once."""
        if problem not in self._problems:
            self._problems.append(problem)

    def settle(self, function: str, hints: dict[str, str]) -> None:
        """Raise `ValueError` with every problem, and the hints for those columns that are missing."""
        problems = list(self._problems)
        if self._missing:
            names = ", ".join(field.name for field in self._fields)
            hint = "".join(f"; {text}" for name, text in hints.items() if name in self._missing)
            missing = ", ".join(dict.fromkeys(self._missing))
            problems.insert(0, f"the DataFrame has no column {missing}, only {names}{hint}")
        if problems:
            raise ValueError(f"{function}: {'; '.join(problems)}")


def _shown(seen: DataType) -> str:
    text = seen.simpleString()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def is_text(seen: DataType) -> bool:
    """Return whether a type is that of texts, of any length and collation."""
    return isinstance(seen, StringType) or seen.typeName() in {"char", "varchar"}


def is_headers(seen: DataType) -> bool:
    """Return whether a type is that of Kafka's headers: ``array<struct<key:string,value:binary>>``."""
    header = seen.elementType if isinstance(seen, ArrayType) else None
    if not isinstance(header, StructType) or header.names != ["key", "value"]:
        return False
    return is_text(header[0].dataType) and isinstance(header[1].dataType, BinaryType)


def quoted(name: str) -> str:
    """Write a column's name for SQL."""
    return f"`{name.replace('`', '``')}`"


def same_name(names: Iterable[str], fold: Callable[[str], str]) -> list[str]:
    """Return the names that another one before them is the same as."""
    met: set[str] = set()
    again = []
    for name in names:
        if fold(name) in met:
            again.append(name)
        met.add(fold(name))
    return again
