"""Which errors are worth a retry, and the pauses between retries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.errors import BrokerError, DeadlineExceeded, Disconnected, ProtocolError

FIRST_PAUSE: Final = 0.05
MAX_PAUSE: Final = 1.0
_STALE_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


def is_retriable(error: ProtocolError) -> bool:
    """Return whether the request may succeed later, with fresh metadata."""
    if isinstance(error, BrokerError):
        return error.retriable
    return isinstance(error, Disconnected)


def is_retriable_or_timeout(error: ProtocolError) -> bool:
    """Return whether the request may succeed later, or timed out."""
    return is_retriable(error) or isinstance(error, DeadlineExceeded)


def is_unknown_server_error(error: ProtocolError) -> bool:
    """Return whether the broker failed for no reason, as 0.8 does while a partition is created or moved."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_SERVER_ERROR


def is_stale_metadata(error: ProtocolError) -> bool:
    """Return whether a broker's error means that the client's metadata may be stale."""
    return isinstance(error, BrokerError) and error.code in _STALE_METADATA


def pauses() -> Iterator[float]:
    """Yield growing pauses in seconds, without end."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, MAX_PAUSE)
