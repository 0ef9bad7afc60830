"""The TCP ports of a local broker: free ones on 127.0.0.1."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass
from typing import Final

HOST: Final = "127.0.0.1"

# Below the ports of outgoing connections (Linux from 32768, macOS from 49152): a client that tries to
# reach a stopped broker may otherwise receive the broker's own port and occupy it.
_RANGE: Final = range(18_000, 32_000)


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the listeners for clients and for the controller."""

    client: int
    controller: int


def is_free(port: int) -> bool:
    """Return whether a server can listen on `port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Return distinct free ports; another program may take one before it is used."""
    # Random, so that brokers that start at once choose different ports.
    ports: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        if is_free(port):
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError(f"{count} ports from {_RANGE.start} to {_RANGE.stop - 1} must be free on {HOST}")
