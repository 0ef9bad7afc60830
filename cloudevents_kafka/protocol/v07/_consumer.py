"""Reading the log of a partition of Kafka 0.7 by successive fetches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.v07._message_set import Entry, MessageSet

MAX_SIZE: Final = 300 * 1024
"""The bytes that a fetch requests: the default of Kafka 0.7's consumer."""

Fetch: TypeAlias = Callable[[str, int, int, int], MessageSet]
"""Called with topic, partition, offset and max_size; returns the set at the offset."""


def messages(
    fetch: Fetch, topic: str, partition: int, offset: int, *, max_size: int, max_message_size: int
) -> Iterator[Entry]:
    """Yield all messages from an offset to the end of the log.

    A set ends with its segment of the log, so only an empty set is the end of the log. A partial message
    is requested again in full, if it has at most ``max_message_size`` bytes. To continue later, start
    at the last entry's ``next_offset``. Raises the errors of ``fetch``, and `Malformed` or `Corrupt` if
    no message starts at the offset.
    """
    size = first_size = max(max_size, 1)
    while (found := fetch(topic, partition, offset, size)).data:
        yield from found
        if found.next_offset == offset:
            size = _larger(found, f"{topic}[{partition}]", size, max_message_size)
        else:
            offset, size = found.next_offset, first_size


def _larger(cut: MessageSet, partition: str, size: int, max_message_size: int) -> int:
    """Return the fetch size that a partial message needs."""
    raw = cut.data
    needed = 4 + int.from_bytes(raw[:4], "big") if len(raw) >= 4 else 4
    if len(raw) < size:
        raise Malformed(
            f"{partition}: a message of {needed} bytes ends after {len(raw)} of {size} requested bytes; "
            "check that a message starts at this offset",
            at=cut.offset,
        )
    if needed > max_message_size:
        raise Malformed(
            f"{partition}: a message must have at most {max_message_size} bytes, got {needed}; "
            "check that a message starts at this offset",
            at=cut.offset,
        )
    return max(needed, size + 1)
