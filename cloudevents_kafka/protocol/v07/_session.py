"""A session with ZooKeeper through kazoo, and nodes as Kafka 0.7 makes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from cloudevents_kafka.protocol.errors import ClientError, Disconnected, Unsupported
from cloudevents_kafka.protocol.v07._znodes import above

PATIENCE: Final = 10.0
"""How many seconds to wait for an ephemeral node to go; 0.7's sessions live for 6 by default."""


class NodeExists(ClientError):
    """An ephemeral node that another session made, and that has not gone in the time given."""


def connect(hosts: str, *, timeout: float = 10.0) -> Any:
    """Start a ``KazooClient``, whose sessions time out after that many seconds; stop it when done.

    `Unsupported` without kazoo, `Disconnected` where no server of ``hosts`` ("host:port,...") answers.
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
    """Give kazoo's errors as `Disconnected`."""
    from kazoo.exceptions import KazooException
    from kazoo.handlers.threading import KazooTimeoutError

    try:
        yield
    except (KazooException, KazooTimeoutError) as error:
        raise Disconnected(f"ZooKeeper: {type(error).__name__} {error}".rstrip()) from error


def create(client: Any, path: str, value: bytes, *, creator: str, ephemeral: bool = False) -> bool:
    """Create a node, and those above it with their creator's id as value; False if it is there."""
    from kazoo.exceptions import NodeExistsError, NoNodeError

    with errors():
        while True:
            try:
                client.create(path, value, ephemeral=ephemeral)
            except NodeExistsError:
                return False
            except NoNodeError:
                for parent in above(path):
                    with suppress(NodeExistsError):
                        client.create(parent, creator.encode())
            else:
                return True


def announce(client: Any, path: str, value: bytes, *, creator: str, patience: float = PATIENCE) -> None:
    """Create an ephemeral node, once a predecessor's has gone.

    A node outlives its process until ZooKeeper ends the session, so after a fast restart one's own
    id is still there. It is waited for up to ``patience`` seconds; then `NodeExists`. A
    node of this very session just gets the value.
    """
    deadline = time.monotonic() + patience
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
                f"{path} is still there after {patience:g} s, made by session 0x{stat.ephemeralOwner:x}. "
                "It goes when that session ends: wait for its timeout if its process is gone, "
                "else take another id"
            )
