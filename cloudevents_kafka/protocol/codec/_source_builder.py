"""Source text that is put together line by line, with the names that it refers to."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from cloudevents_kafka.protocol.errors import ProtocolError


class FallBack(ProtocolError):
    """Compiled code met something that is not as it should be; the interpreter will say what."""


class Code:
    """Lines of one function, ``run``, and its global names."""

    def __init__(self, head: str) -> None:
        """Begin with the function's ``def`` line."""
        self.names: dict[str, Any] = {"FallBack": FallBack}
        self._lines = [head]
        self._depth = 1
        self._numbers = count(1)

    @property
    def text(self) -> str:
        """The source so far."""
        return "\n".join(self._lines)

    def add(self, line: str) -> None:
        """Add a line at the current depth."""
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line that ends with a colon, and put what follows one level deeper."""
        self.add(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, kind: str = "v") -> str:
        """Return a variable that is not used yet."""
        return f"{kind}{next(self._numbers)}"

    def refer(self, value: object, kind: str) -> str:
        """Return a global name for a value: the same one for the same value."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(kind)
        self.names[name] = value
        return name

    def struct(self, codes: str, method: str) -> str:
        """Return a global name for a method of the `struct.Struct` of these codes, big endian."""
        name = f"{method}_{codes.replace('?', '_')}"
        self.names.setdefault(name, getattr(struct.Struct(f">{codes}"), method))
        return name
