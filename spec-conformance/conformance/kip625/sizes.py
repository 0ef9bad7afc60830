"""The sizes of messages with variable-length integers (KIP-625), measured with the encoders.

The KIP's example is a MetadataResponse with one topic of 100 partitions on two brokers. `rows` returns its
sizes, `kip_matches` the messages that have the KIP's totals, `unsigned_ranges` and `zigzag_ranges` the size
of each integer. `table`, `histogram` and `svg` present them.

The size with fixed integers is that of version 9. The seven integers of a partition change by what their
varints add; a test shows that these are the sizes of messages with such types. The KIP is under discussion,
and brokers do not support it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.topics import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from conformance.kip625 import _svg

PARTITIONS: Final = 100
KIP_TOTALS: Final = (3216, 1170, 4026)  # S3-M3
"""The KIP's bytes for fixed integers, unsigned varints at best, and at worst."""

_WHY_THEY_DIFFER: Final = (
    "The KIP's totals differ as they are of three messages, each with other lists of replicas in sync."
)
ENCODINGS: Final = ("fixed", "unsigned varint", "zigzag varint", "worst varint")


class ListLengths(NamedTuple):
    """The lengths of the lists of a partition."""

    replicas: int
    in_sync: int
    offline: int = 0


class FirstNumbers(NamedTuple):
    """The first broker id and partition index, and the epoch and error code of every partition."""

    broker: int = 0
    partition: int = 0
    epoch: int = 0
    error: int = 0


SMALL: Final = FirstNumbers()
# S3-M4: "ids greater than 134,217,727" is the edge of zigzag, not of unsigned varints
LARGE: Final = FirstNumbers(broker=1 << 28, partition=1 << 28, epoch=1 << 28, error=1 << 14)
"""The first numbers whose unsigned varint has a byte more than the fixed integer, in all seven fields."""


class Row(NamedTuple):
    """The sizes of a message in the order of `ENCODINGS`; the worst is with `LARGE` numbers."""

    lists: ListLengths
    sizes: tuple[int, int, int, int]


class KipMatch(NamedTuple):
    """A message that has one of the KIP's totals, and its three sizes."""

    name: str
    partitions: str
    total: int
    lists: Sequence[ListLengths]
    sizes: tuple[int, int, int]


class Range(NamedTuple):
    """The integers from ``first`` to ``last``, both included, whose encoding has ``bytes`` bytes."""

    bytes: int
    first: int
    last: int


def metadata(
    lists: Sequence[ListLengths], numbers: FirstNumbers = SMALL, topic: str = "topic"
) -> MetadataResponse:
    """Return the message: two brokers, one topic, and a partition for each item of ``lists``."""
    # S3-M3: "100 partition topic replicated across two brokers"
    broker = numbers.broker
    partitions = [
        MetadataResponsePartition(
            error_code=numbers.error,
            partition_index=numbers.partition + index,
            leader_id=broker,
            leader_epoch=numbers.epoch,
            replica_nodes=list(range(broker, broker + lengths.replicas)),
            isr_nodes=list(range(broker, broker + lengths.in_sync)),
            offline_replicas=list(range(broker, broker + lengths.offline)),
        )
        for index, lengths in enumerate(lists)
    ]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=broker + n, host="localhost", port=9092) for n in (0, 1)],
        controller_id=broker,
        topics=[MetadataResponseTopic(error_code=ErrorCode.NONE, name=topic, partitions=partitions)],
    )


def sizes(message: MetadataResponse) -> tuple[int, int, int]:
    """Return the sizes of the body in bytes: with fixed integers, unsigned varints and zigzag varints."""
    fixed = len(compiler.encode(message, 9))
    return (
        fixed,
        fixed + _added(message, varint.encode_unsigned),
        fixed + _added(message, varint.encode_signed),
    )


def _added(message: MetadataResponse, encode: Callable[[int, int], bytes]) -> int:
    """Return the bytes that varints add to the integers of the partitions."""
    added = 0
    for partition in message.topics[0].partitions:
        int32s = [partition.partition_index, partition.leader_id, partition.leader_epoch]
        int32s += partition.replica_nodes + partition.isr_nodes + partition.offline_replicas
        added += sum(len(encode(number, 32)) - 4 for number in int32s)
        added += len(encode(partition.error_code, 16)) - 2
    return added


def _row_sizes(lists: Sequence[ListLengths], topic: str = "topic") -> tuple[int, int, int, int]:
    """Return the sizes in the order of `ENCODINGS`."""
    small, large = (sizes(metadata(lists, numbers, topic)) for numbers in (SMALL, LARGE))
    return *small, large[1]


def rows() -> list[Row]:
    """Return the sizes of the KIP's example: all replicas in sync, 1 of 2 in sync, the other offline."""
    cases = (ListLengths(2, 2), ListLengths(2, 1), ListLengths(2, 1, 1))
    return [Row(lists, _row_sizes([lists] * PARTITIONS)) for lists in cases]


def kip_matches() -> list[KipMatch]:
    """Return three messages, each of which has one of the KIP's totals."""
    cases = (
        ("fixed", "35 partitions with both replicas in sync, 65 with one", [2] * 35 + [1] * 65),
        ("best", "94 partitions with one of two replicas in sync, 6 with none", [1] * 94 + [0] * 6),
        ("worst", "50 partitions with both replicas in sync, 50 with one", [2] * 50 + [1] * 50),
    )
    matches = []
    for (name, partitions, in_sync), total in zip(cases, KIP_TOTALS, strict=True):
        lists = [ListLengths(2, count) for count in in_sync]
        fixed, best, _, worst = _row_sizes(lists, "test-topic")
        matches.append(KipMatch(name, partitions, total, lists, (fixed, best, worst)))
    return matches


def unsigned_ranges() -> list[Range]:
    """Return the 32-bit patterns by the size of their unsigned varint; those from 2^31 on are negative."""
    return _ranges(1 << 32, lambda n: len(varint.encode_unsigned(n - (n >> 31 << 32))))


def zigzag_ranges() -> list[Range]:
    """Return the 32-bit integers by the size of their zigzag varint, on both sides of 0."""
    above = _ranges(1 << 31, lambda n: len(varint.encode_signed(n)))
    below = [Range(size, -1 - last, -1 - first) for size, first, last in reversed(above)]
    return [*below[:-1], Range(1, below[-1].first, above[0].last), *above[1:]]


def _ranges(end: int, size_of: Callable[[int], int]) -> list[Range]:
    """Return the ranges of integers from 0 on, whose sizes must ascend."""
    found, start = [], 0
    while start < end:
        count = size_of(start)
        stop = bisect_right(range(end), count, lo=start, key=size_of)
        found.append(Range(count, start, stop - 1))
        start = stop
    return found


def table() -> str:
    """Return the sizes as text."""
    lines = [
        f"MetadataResponse v9, bytes of the body: 2 brokers (localhost), 1 topic, {PARTITIONS} partitions.",
        "The encoding of seven integers of each partition differs; the rest is as in version 9.",
        "",
        "replicas  in sync  offline " + "".join(f"{name:>17}" for name in ENCODINGS),
    ]
    for (replicas, in_sync, offline), counts in rows():
        lines.append(f"{replicas:8}{in_sync:9}{offline:9} {''.join(f'{count:17,}' for count in counts)}")
    fixed, best, worst = KIP_TOTALS
    lines += [
        f"{'the KIP has its own totals':26}{fixed:16,}{best:17,}{'-':>17}{worst:17,}",
        "",
        "worst: broker and partition ids and epochs from 2^28 on, error codes from 2^14 on.",
        "",
        "The KIP's totals differ from ours as they are not of one message: each is that of another one",
        "(topic test-topic, 2 replicas each), by how many replicas are in sync:",
        "",
        f"{'':66}{'fixed':>7}{'best':>8}{'worst':>8}",
    ]
    for match in kip_matches():
        hits = (f"{size:,}{'*' if size == match.total else ' '}" for size in match.sizes)
        lines.append(f"{match.name:6} {match.partitions:59}{''.join(f'{hit:>8}' for hit in hits)}".rstrip())
    return "\n".join(
        [
            *lines,
            "",
            "A message with all three sizes does not exist: beyond the 101 error codes of 100 partitions,",
            "the totals leave at most 178 bytes for other fields, but array lengths alone have 300.\n",
        ]
    )


def histogram() -> str:
    """Return the size of each integer in both encodings as text, as the KIP draws it, with correct edges."""
    return "\n".join(
        [
            "unsigned varint of a 32-bit integer (its pattern; negative integers are those from 2^31 on)",
            *_staircase(unsigned_ranges()),
            "",
            "zigzag varint of a 32-bit integer",
            *_staircase(zigzag_ranges()),
            "",
        ]
    )


def _staircase(ranges: Sequence[Range]) -> list[str]:
    """Return the lines of a drawing: each range at the height of its size; the axis is not linear."""
    lines = []
    for height in range(5, 0, -1):
        steps = "".join(("-" if r.bytes == height else " ") * 2 * r.bytes for r in ranges)
        edges = ", ".join(f"{r.first:,} to {r.last:,}" for r in ranges if r.bytes == height)
        lines.append(f"{height} | {steps}  {edges}")
    zero = 2 * sum(r.bytes for r in ranges if r.last < 0) + (ranges[0].first < 0)
    return [*lines, f"  +-{'-' * 2 * sum(r.bytes for r in ranges)}", f"    {' ' * zero}0"]


def svg() -> str:
    """Return both as an SVG."""
    fixed, best, worst = KIP_TOTALS
    groups: list[tuple[str, Sequence[int | None]]] = [
        (f"{r.lists.in_sync} of {r.lists.replicas} in sync, {r.lists.offline} offline", r.sizes)
        for r in rows()
    ]
    groups.append(("the KIP's own totals", (fixed, best, None, worst)))
    bars = f"Bytes of a MetadataResponse with {PARTITIONS} partitions on 2 brokers (worst: ids from 2^28)"
    return _svg.page(
        "Sizes with variable-length integers (KIP-625)",
        _svg.bars(bars, ENCODINGS, groups, _WHY_THEY_DIFFER),
        _svg.steps("Bytes of an unsigned varint, by the 32-bit pattern", unsigned_ranges(), 1),
        _svg.steps("Bytes of a zigzag varint, by the integer", zigzag_ranges(), 2),
    )
