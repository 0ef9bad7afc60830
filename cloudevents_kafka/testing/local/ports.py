"""Free TCP ports on 127.0.0.1."""

from __future__ import annotations

import random
import socket

# Below the ports that systems hand out for outgoing connections (Linux from
# 32768, macOS from 49152): a client that tries again and again to reach a broker
# that is down may otherwise be given the broker's own port, and hold it.
_RANGE = range(18_000, 32_000)


def is_free(port: int) -> bool:
    """Say whether a server could listen on `port` right now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Pick distinct ports that are free now; one may be taken before it is used."""
    # Not for secrets: the spread keeps brokers started at once apart.
    picked: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        if is_free(port):
            picked.append(port)
        if len(picked) == count:
            return picked
    raise OSError(f"no {count} free ports from {_RANGE.start} to {_RANGE.stop - 1} on 127.0.0.1")
