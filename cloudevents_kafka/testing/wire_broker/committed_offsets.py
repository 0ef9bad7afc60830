"""The positions that groups commit."""

from __future__ import annotations

from typing import Final, NamedTuple


class Position(NamedTuple):
    """A position as it was committed."""

    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""


class Positions:
    """Positions by group, topic and partition; those of version 0 apart, as if in ZooKeeper."""

    def __init__(self) -> None:
        """Begin empty."""
        self._kept: Final[dict[tuple[bool, str], dict[tuple[str, int], Position]]] = {}

    def keep(
        self, group: str, topic: str, partition: int, position: Position, *, zookeeper: bool = False
    ) -> None:
        """Keep a position in place of an older one."""
        self._kept.setdefault((zookeeper, group), {})[topic, partition] = position

    def of(self, group: str, *, zookeeper: bool = False) -> dict[tuple[str, int], Position]:
        """Return a group's positions by topic and partition."""
        return self._kept.get((zookeeper, group), {})
