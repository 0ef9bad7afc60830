"""`Closing`, the base class of context managers that close themselves at the end of the block."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that calls ``close`` at the end of its block."""

    def close(self) -> object:
        """Release the resources of the object. The method ``close`` of a subclass may return a result."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
