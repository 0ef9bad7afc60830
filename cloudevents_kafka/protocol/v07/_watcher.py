"""Values read from ZooKeeper that are read again whenever a node behind them changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from cloudevents_kafka.protocol.v07 import _session as session

_T = TypeVar("_T")


class Watcher(Generic[_T]):
    """What ``read`` makes of some nodes, always as they are now, as far as ZooKeeper has told.

    ``read`` takes this and asks it for `children` and `value`, which is how it is known what
    to watch. ``changed`` is called with each new value that differs from the one before, on
    kazoo's thread, one call after the other; while it runs no news come in. All is read again after the
    session was lost, too. `Disconnected` if the first reading fails.
    """

    def __init__(
        self, client: Any, read: Callable[[Watcher[_T]], _T], changed: Callable[[_T], None] | None = None
    ) -> None:
        """Read for the first time, and watch; ``client`` is a started ``KazooClient``."""
        self._client: Final = client
        self._read: Final = read
        self._changed: Final = changed
        self._lock: Final = threading.RLock()
        self._open = True
        with self._lock, session.errors():
            self._now = read(self)
        client.add_listener(self._on_state)

    @property
    def now(self) -> _T:
        """The value as it is now."""
        return self._now

    def close(self) -> None:
        """Watch no longer."""
        self._open = False
        self._client.remove_listener(self._on_state)

    def children(self, path: str) -> list[str]:
        """Give the names below a node, sorted; none if there is no such node, whose coming is watched."""
        from kazoo.exceptions import NoNodeError

        while True:
            try:
                return sorted(self._client.get_children(path, watch=self._on_event))
            except NoNodeError:
                if self._client.exists(path, watch=self._on_event) is None:
                    return []

    def value(self, path: str) -> bytes | None:
        """Give a node's value, None if it has just gone: what named it will then have changed, too."""
        from kazoo.exceptions import NoNodeError

        try:
            found: bytes = self._client.get(path, watch=self._on_event)[0]
        except NoNodeError:
            return None
        return found

    def _on_event(self, _: object) -> None:
        self._refresh()

    def _on_state(self, state: object) -> None:
        # Watches do not outlive a session. Listeners must not wait for ZooKeeper, so another thread does.
        if state == "CONNECTED":
            self._client.handler.spawn(self._refresh)

    def _refresh(self) -> None:
        from kazoo.exceptions import KazooException

        with self._lock:
            if not self._open:
                return
            before = self._now
            try:
                self._now = self._read(self)
            except KazooException:
                return  # the connection is lost: when it is back, `_on_state` reads anew
            if self._now != before and self._changed is not None:
                self._changed(self._now)
