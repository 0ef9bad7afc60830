"""The source text of a generated function, and the global names that the function uses."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from cloudevents_kafka.protocol.layout import Array


class Mark(NamedTuple):
    """The number and index of the array element at which `interpreter` begins, and the remaining memory."""

    array: Array
    number: int
    at: int
    left: int


class FallBack(Exception):
    """Raised by generated code if the module `interpreter` must handle the value or the bytes."""

    def __init__(self, marks: Sequence[Mark] = ()) -> None:
        super().__init__()
        self.marks = marks


class FunctionSource:
    """The lines of one function, ``run``, and the global names that the function uses."""

    def __init__(self, signature: str) -> None:
        """Create the source text of a function that has only its ``def`` line."""
        self.names: dict[str, Any] = {"FallBack": FallBack}
        self._lines = [signature]
        self._depth = 1
        self._numbers = count(1)

    @property
    def text(self) -> str:
        """The source text of the function."""
        return "\n".join(self._lines)

    def add(self, line: str) -> None:
        """Add a line with the current indentation."""
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line that ends with a colon; yield to a `with` block whose lines are indented."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fall_back(self, head: str) -> None:
        """Add a line that ends with a colon, and below this line, a line that raises `FallBack`."""
        with self.block(head):
            self.add("raise FallBack")

    def new_variable(self, prefix: str = "v") -> str:
        """Return an unused variable name."""
        return f"{prefix}{next(self._numbers)}"

    def global_name(self, value: object, prefix: str) -> str:
        """Return a global name for a value; the same value always has the same name."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.new_variable(prefix)
        self.names[name] = value
        return name

    def struct(self, codes: str, method: str) -> str:
        """Return a global name for a method of a big-endian `struct.Struct` with these format characters."""
        name = f"{method}_{codes.replace('?', '_')}"
        self.names.setdefault(name, getattr(struct.Struct(f">{codes}"), method))
        return name
