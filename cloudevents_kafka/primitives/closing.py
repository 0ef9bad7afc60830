"""`Closing`: the base class of context managers that call their method ``close`` at the end of a block."""

from __future__ import annotations

from typing import Self


class Closing:
    """A context manager that calls its own method ``close`` at the end of the block."""

    def close(self) -> object:
        """Release the resources of this object. The method ``close`` of a subclass may return a result."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
