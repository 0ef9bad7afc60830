"""Reading a partition's log of Kafka 0.7 from fetch to fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.errors import Malformed
from cloudevents_kafka.protocol.v07._message_set import Entry, MessageSet

MAX_SIZE: Final = 300 * 1024
"""How much one fetch asks for at first: what Kafka 0.7's own consumer took."""

Fetch: TypeAlias = Callable[[str, int, int, int], MessageSet]
"""Topic, partition, offset, max_size: the set from there on."""


def messages(
    fetch: Fetch, topic: str, partition: int, offset: int, *, max_size: int, max_message_size: int
) -> Iterator[Entry]:
    """Give all messages from an offset on; end at the end of the log.

    A set ends with its segment of the log, so a short one does not mean that the log is over: an
    empty one does. Where a set is a part of one message, that message is asked for in full, up
    to ``max_message_size`` bytes. To read on later, begin at the last entry's ``next_offset``.
    Raises what ``fetch`` does, and `Malformed` or `Corrupt` where no message begins at the offset.
    """
    size = at_first = max(max_size, 1)
    while (found := fetch(topic, partition, offset, size)).data:
        yield from found
        if found.next_offset == offset:
            size = _larger(found, f"{topic}-{partition}", size, max_message_size)
        else:
            offset, size = found.next_offset, at_first


def _larger(cut: MessageSet, place: str, size: int, max_message_size: int) -> int:
    """Return the size that a cut message needs."""
    raw = cut.data
    needed = 4 + int.from_bytes(raw[:4], "big") if len(raw) >= 4 else 4
    if len(raw) < size:
        raise Malformed(
            f"{place}: the broker had room for {size} bytes and gave {len(raw)} of a message of {needed}; "
            "does one begin at this offset?",
            at=cut.offset,
        )
    if needed > max_message_size:
        raise Malformed(
            f"{place}: a message may have {max_message_size} bytes, got {needed}; does it begin here?",
            at=cut.offset,
        )
    return max(needed, size + 1)
