"""Values computed from ZooKeeper nodes, and computed again when the nodes change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from cloudevents_kafka.protocol.v07 import _session as session

_T = TypeVar("_T")


class Watcher(Generic[_T]):
    """The value that ``read`` computes from some nodes, up to date with ZooKeeper's notifications.

    ``read`` is called with the watcher, and gets the nodes by `children` and `value`; these nodes are
    watched. ``on_change`` is called with each new value that differs from the last one: on kazoo's
    thread, one call at a time, and further notifications wait for it. After a lost session, all nodes
    are read again. Raises `Disconnected` if the first read fails.
    """

    def __init__(
        self, client: Any, read: Callable[[Watcher[_T]], _T], on_change: Callable[[_T], None] | None = None
    ) -> None:
        """Read the nodes and watch them; ``client`` must be a started ``KazooClient``."""
        self._client: Final = client
        self._read: Final = read
        self._on_change: Final = on_change
        self._lock: Final = threading.RLock()
        self._open = True
        with self._lock, session.errors():
            self._current = read(self)
        client.add_listener(self._on_state)

    @property
    def current(self) -> _T:
        """The current value."""
        return self._current

    def close(self) -> None:
        """Stop watching."""
        self._open = False
        self._client.remove_listener(self._on_state)

    def children(self, path: str) -> list[str]:
        """Return the sorted names of a node's children; [] if the node does not exist (yet)."""
        from kazoo.exceptions import NoNodeError

        while True:
            try:
                return sorted(self._client.get_children(path, watch=self._on_event))
            except NoNodeError:
                if self._client.exists(path, watch=self._on_event) is None:
                    return []

    def value(self, path: str) -> bytes | None:
        """Return a node's value, None if it no longer exists; then its parent notifies, too."""
        from kazoo.exceptions import NoNodeError

        try:
            found: bytes = self._client.get(path, watch=self._on_event)[0]
        except NoNodeError:
            return None
        return found

    def _on_event(self, _: object) -> None:
        self._refresh()

    def _on_state(self, state: object) -> None:
        # Watches end with their session. A listener must not wait for ZooKeeper, so use another thread.
        if state == "CONNECTED":
            self._client.handler.spawn(self._refresh)

    def _refresh(self) -> None:
        from kazoo.exceptions import KazooException

        with self._lock:
            if not self._open:
                return
            before = self._current
            try:
                self._current = self._read(self)
            except KazooException:
                return  # the connection is lost; `_on_state` reads again once it is back
            if self._current != before and self._on_change is not None:
                self._on_change(self._current)
