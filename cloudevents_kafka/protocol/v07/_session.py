"""Sessions with ZooKeeper through kazoo, and the creation of Kafka 0.7's nodes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

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
