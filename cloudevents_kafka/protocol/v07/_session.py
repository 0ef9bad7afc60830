"""Sessions with ZooKeeper through kazoo, the creation of nodes, and values computed from nodes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

from cloudevents_kafka.protocol.errors import ClientError, Disconnected, Unsupported
from cloudevents_kafka.protocol.v07._znodes import parents

TIMEOUT: Final = 10.0
"""The seconds to wait for another session's node to expire; Kafka 0.7's session timeout is 6."""


class NodeExists(ClientError):
    """An ephemeral node of another session, which did not expire within the timeout."""


def connect(hosts: str, *, timeout: float = 10.0) -> Any:
    """Return a started ``KazooClient``, which the caller must stop.

    ``hosts`` is "host:port,..."; ``timeout`` is the session timeout in seconds. Raises `Unsupported`
    without kazoo, and `Disconnected` if none of the hosts answers.
    """
    try:
        from kazoo.client import KazooClient
    except ImportError as error:
        raise Unsupported("ZooKeeper needs kazoo: pip install 'cloudevents-kafka[protocol]'") from error
    client = KazooClient(hosts, timeout=timeout)
    with errors():
        client.start(timeout)
    return client


@contextmanager
def errors() -> Iterator[None]:
    """Yield once, and raise `Disconnected` for kazoo's errors."""
    from kazoo.exceptions import KazooException
    from kazoo.handlers.threading import KazooTimeoutError

    try:
        yield
    except (KazooException, KazooTimeoutError) as error:
        raise Disconnected(f"ZooKeeper: {type(error).__name__} {error}".rstrip()) from error


def create(client: Any, path: str, value: bytes, *, creator: str, ephemeral: bool = False) -> bool:
    """Create a node, and its missing parents with ``creator`` as value; return whether it is new."""
    from kazoo.exceptions import NodeExistsError, NoNodeError

    with errors():
        while True:
            try:
                client.create(path, value, ephemeral=ephemeral)
            except NodeExistsError:
                return False
            except NoNodeError:
                for parent in parents(path):
                    with suppress(NodeExistsError):
                        client.create(parent, creator.encode())
            else:
                return True


def announce(client: Any, path: str, value: bytes, *, creator: str, timeout: float = TIMEOUT) -> None:
    """Create an ephemeral node, or set its value if it belongs to this session.

    A node outlives its process until ZooKeeper expires the session, so a restarted process may find
    the node of its last run. Raises `NodeExists` if another session's node remains after ``timeout``
    seconds.
    """
    deadline = time.monotonic() + timeout
    while not create(client, path, value, creator=creator, ephemeral=True):
        gone = threading.Event()
        with errors():
            stat = client.exists(path, watch=lambda _, gone=gone: gone.set())
            if stat is None:
                continue
            if stat.ephemeralOwner == client.client_id[0]:
                client.set(path, value)
                return
        if not gone.wait(max(0.0, deadline - time.monotonic())):
            raise NodeExists(
                f"{path} must not exist, but session 0x{stat.ephemeralOwner:x} owns it after {timeout:g} s; "
                "wait for the session to expire, or use another id"
            )


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
        with self._lock, errors():
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
