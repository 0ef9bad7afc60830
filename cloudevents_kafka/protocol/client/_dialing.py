"""`dial`: opens a TCP connection to one of the addresses of a host.

A host name may have several addresses, some of which refuse connections or do not answer. The addresses of
the host are tried in the order in which the resolver returns them. The next connection attempt begins after a
short time, or as soon as all earlier attempts have failed (RFC 8305). The earlier attempts continue, and the
first connection that succeeds is used. All attempts share the deadline, and the error states why each address
failed.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
from collections import deque
from typing import Any, Final

from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._retry import MAX_SECONDS, Deadline
from cloudevents_kafka.protocol.errors import ClientError, DeadlineExceeded, Disconnected

_HEAD_START: Final = 0.25  # seconds; RFC 8305 8: "recommended value for a default delay is 250 milliseconds"
_BEGUN: Final = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK})


def dial(address: Address, deadline: Deadline) -> socket.socket:
    """Return a connected socket; raise `Disconnected` or `DeadlineExceeded`."""
    deadline.check(f"connecting to {address}")
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        attempts = _Attempts([(family, place) for family, *_, place in found])
        try:
            connected = attempts.first(deadline)
        finally:
            attempts.close()
    except (OSError, OverflowError, ValueError) as error:  # the last two: no such port or host name
        raise Disconnected(f"{address}: cannot connect: {error}") from error
    if connected is None:
        raise _failure(address, attempts, deadline)
    return connected


def _failure(address: Address, attempts: _Attempts, deadline: Deadline) -> ClientError:
    each = {str(place): reason for place, reason in attempts.failures.items()}
    only = len(each) == 1 and str(address) in each
    reasons = "; ".join(reason if only else f"{place}: {reason}" for place, reason in each.items())
    if deadline.expired():
        return DeadlineExceeded(f"{address}: connecting timed out{'' if only else f': {reasons}'}")
    return Disconnected(f"{address}: cannot connect: {reasons}")


class _Attempts:
    """Connections that are being opened, and the reasons why other connections failed."""

    def __init__(self, places: list[tuple[int, Any]]) -> None:
        self._waiting: Final = deque(dict.fromkeys(places))
        self._selector: Final = selectors.DefaultSelector()
        self.failures: Final[dict[Address, str]] = {}

    def first(self, deadline: Deadline) -> socket.socket | None:
        """Return the first connection that succeeds, or None if all attempts fail or the deadline passes."""
        head_start = Deadline(0)
        while self._waiting or self._selector.get_map():
            if self._waiting and (head_start.expired() or not self._selector.get_map()):
                self._begin(*self._waiting.popleft())
                head_start = Deadline(_HEAD_START)
            limit = head_start.at_most(_HEAD_START) if self._waiting else MAX_SECONDS
            for key, _ in self._selector.select(deadline.at_most(limit)) if self._selector.get_map() else ():
                if (connected := self._finish(key)) is not None:
                    return connected
            if deadline.expired():
                self._give_up()
                return None
        return None

    def _begin(self, family: int, place: Any) -> None:
        """Begin to connect to an address."""
        address = Address(*place[:2])
        try:
            attempt = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # without IPv6, for instance
            self.failures[address] = str(error)
            return
        try:
            attempt.setblocking(False)
            code = attempt.connect_ex(place)
            if code in _BEGUN:
                self._selector.register(attempt, selectors.EVENT_WRITE, address)
                return
            self.failures[address] = os.strerror(code)
        except BaseException:
            attempt.close()
            raise
        attempt.close()

    def _finish(self, key: selectors.SelectorKey) -> socket.socket | None:
        """Return the socket of a finished attempt, or None if the attempt has failed."""
        attempt: Any = key.fileobj
        self._selector.unregister(attempt)
        code = attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            return attempt  # type: ignore[no-any-return]
        attempt.close()
        self.failures[key.data] = os.strerror(code)
        return None

    def _give_up(self) -> None:
        """Record the addresses that did not answer, or were not tried, as failed."""
        for key in self._selector.get_map().values():
            self.failures[key.data] = "no answer"
        for _, place in self._waiting:
            self.failures[Address(*place[:2])] = "not tried"

    def close(self) -> None:
        """Close all sockets except the connected socket."""
        for key in list(self._selector.get_map().values()):
            unfinished: Any = key.fileobj
            unfinished.close()
        self._selector.close()
