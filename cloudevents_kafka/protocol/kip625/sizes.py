"""What integers of variable length would save (KIP-625): bytes, as they come out of the encoders.

The KIP's example is a MetadataResponse with one topic of 100 partitions on two brokers. `rows`
has its sizes, `fills` what it takes to get the KIP's own totals, `ranges` how many bytes
which integer takes; `table`, `histogram` and `picture` show them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cloudevents_kafka.protocol import frames, varint
from cloudevents_kafka.protocol.kip625 import _svg as svg
from cloudevents_kafka.protocol.kip625._messages import (
    FIXED,
    UNSIGNED,
    ZIGZAG,
    MetadataByType,
    PartitionByType,
    TopicByType,
)
from cloudevents_kafka.protocol.messages.metadata import MetadataResponseBroker

PARTITIONS: Final = 100
HOST: Final = "localhost"
TOPIC: Final = "topic"
KIP_TOPIC: Final = "test-topic"
KIP_TOTALS: Final = (3216, 1170, 4026)
"""The KIP's bytes for fixed integers, unsigned varints at best, and at worst."""

ENCODINGS: Final = ("fixed", "unsigned varint", "zigzag varint", "worst varint")

_CASES: Final = ((2, 2, 0), (2, 1, 0), (2, 1, 1))


class Lists(NamedTuple):
    """How long the lists of one partition are."""

    replicas: int
    in_sync: int
    offline: int = 0


class Numbers(NamedTuple):
    """Where ids begin to count, and what else stands in every partition."""

    broker: int = 0
    partition: int = 0
    epoch: int = 0
    error: int = 0


SMALL: Final = Numbers()
LARGE: Final = Numbers(broker=1 << 28, partition=1 << 28, epoch=1 << 28, error=1 << 14)
"""From here on an unsigned varint takes a byte more than the fixed integer, in all seven fields."""


class Row(NamedTuple):
    """The sizes of one message; ``worst`` is as unsigned varints, with `LARGE` numbers."""

    lists: Lists
    fixed: int
    unsigned: int
    zigzag: int
    worst: int

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The sizes, as `ENCODINGS` names them."""
        return self.fixed, self.unsigned, self.zigzag, self.worst


class Fill(NamedTuple):
    """Lists that give one of the KIP's totals, and the sizes of that message in all three ways."""

    which: str
    how: str
    kip: int
    lists: Sequence[Lists]
    sizes: tuple[int, int, int]


class Range(NamedTuple):
    """The integers from ``first`` to ``last``, both included, take that many bytes."""

    bytes: int
    first: int
    last: int


def metadata(lists: Sequence[Lists], numbers: Numbers = SMALL, topic: str = TOPIC) -> MetadataByType:
    """Make the message: two brokers, one topic, a partition for each of the lists."""
    partitions = [_partition(index, lengths, numbers) for index, lengths in enumerate(lists)]
    return MetadataByType(
        brokers=[MetadataResponseBroker(node_id=numbers.broker + n, host=HOST, port=9092) for n in (0, 1)],
        controller_id=numbers.broker,
        topics=[TopicByType(error_code=0, name=topic, partitions=partitions)],
    )


def size(message: MetadataByType, version: int) -> int:
    """Return the bytes of the body in a version of `kip625`."""
    return len(frames.encode(message, version))


def expected(hosts: Sequence[str], topic: str, partitions: int, entries: int) -> int:
    """Return the size with fixed integers by sums; ``entries`` are those of all lists.

    48 is what stands around: throttle time 4, brokers 1 + 2 * (id 4, host's length 1, port 4, rack 1,
    tags 1), cluster id 1, controller 4, topics 1, error 2, name's length 1, internal 1, partitions
    1, operations 4, tags 1, operations 4, tags 1. A partition has 18: error 2, index,
    leader and epoch 4 each, three lengths, and the byte of no tags that the KIP leaves out.
    """
    return 48 + sum(map(len, hosts)) + len(topic) + 18 * partitions + 4 * entries


def rows() -> list[Row]:
    """Measure the KIP's example, with all replicas in sync, with one of two, and the other offline."""
    return [_row(Lists(*case)) for case in _CASES]


def fills() -> list[Fill]:
    """Measure three messages that give the KIP's totals, one each."""
    cases = (
        ("fixed", "35 partitions with both replicas in sync, 65 with one", [2] * 35 + [1] * 65),
        ("best", "94 partitions with one of two replicas in sync, 6 with none", [1] * 94 + [0] * 6),
        ("worst", "50 partitions with both replicas in sync, 50 with one", [2] * 50 + [1] * 50),
    )
    return [
        Fill(which, how, total, lists, _three(lists))
        for (which, how, in_sync), total in zip(cases, KIP_TOTALS, strict=True)
        for lists in ([Lists(2, count) for count in in_sync],)
    ]


def unsigned_ranges() -> list[Range]:
    """Give the 32-bit patterns by the bytes of their unsigned varint; from 2^31 on they are negative ints."""
    return _ranges(0, 1 << 32, lambda n: len(varint.encode_unsigned(n - (n >> 31 << 32))))


def zigzag_ranges() -> list[Range]:
    """Give the 32-bit integers by the bytes of their zigzag varint, on both sides of 0."""
    above = _ranges(0, 1 << 31, lambda n: len(varint.encode_signed(n)))
    below = _ranges(0, 1 << 31, lambda n: len(varint.encode_signed(-1 - n)))
    around = Range(1, -1 - below[0].last, above[0].last)
    return [*(Range(r.bytes, -1 - r.last, -1 - r.first) for r in below[:0:-1]), around, *above[1:]]


def table() -> str:
    """Write the sizes as a text."""
    lines = [
        f"MetadataResponse v9, bytes of the body: 2 brokers ({HOST}), 1 topic, {PARTITIONS} partitions.",
        "Seven integers of each partition are encoded in another way, all else is as in version 9.",
        "",
        "replicas  in sync  offline " + "".join(f"{name:>17}" for name in ENCODINGS),
        *(_line(row) for row in rows()),
        "",
        "worst: broker and partition ids and epochs from 2^28 on, error codes from 2^14 on.",
        "",
        "The KIP's totals, fixed {:,}, best {:,} and worst {:,}, come out of three messages".format(
            *KIP_TOTALS
        ),
        f"(topic {KIP_TOPIC}, 2 replicas each), one of them each:",
        "",
        f"{'':66}{'fixed':>7}{'best':>8}{'worst':>8}",
        *(_fill(fill) for fill in fills()),
        "",
        "No one message has all three sizes: with no more int16 than the 101 error codes of 100 partitions,",
        "they would leave 178 bytes at most for what is no such integer; array lengths alone take 300.",
    ]
    return "\n".join(lines) + "\n"


def histogram() -> str:
    """Write how many bytes which integer takes in both encodings, as the KIP draws it, edges corrected."""
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


def picture() -> str:
    """Draw both as an SVG."""
    groups = [
        (f"{r.lists.replicas} replicas, {r.lists.in_sync} in sync, {r.lists.offline} offline", r.sizes)
        for r in rows()
    ]
    return svg.page(
        "What variable-length integers would save (KIP-625)",
        svg.bars(
            f"Bytes of a MetadataResponse with {PARTITIONS} partitions on 2 brokers (worst: ids from 2^28)",
            ENCODINGS,
            groups,
        ),
        svg.steps(
            "Bytes of an unsigned varint, by the 32-bit pattern",
            unsigned_ranges(),
            ENCODINGS.index("unsigned varint"),
        ),
        svg.steps(
            "Bytes of a zigzag varint, by the integer", zigzag_ranges(), ENCODINGS.index("zigzag varint")
        ),
    )


def _partition(index: int, lists: Lists, numbers: Numbers) -> PartitionByType:
    brokers = [numbers.broker + n for n in range(max(lists))]
    return PartitionByType(
        error_code=numbers.error,
        partition_index=numbers.partition + index,
        leader_id=numbers.broker,
        leader_epoch=numbers.epoch,
        replica_nodes=brokers[: lists.replicas],
        isr_nodes=brokers[: lists.in_sync],
        offline_replicas=brokers[: lists.offline],
    )


def _row(lists: Lists) -> Row:
    small, large = (metadata([lists] * PARTITIONS, numbers) for numbers in (SMALL, LARGE))
    return Row(lists, size(small, FIXED), size(small, UNSIGNED), size(small, ZIGZAG), size(large, UNSIGNED))


def _three(lists: Sequence[Lists]) -> tuple[int, int, int]:
    small, large = (metadata(lists, numbers, KIP_TOPIC) for numbers in (SMALL, LARGE))
    return size(small, FIXED), size(small, UNSIGNED), size(large, UNSIGNED)


def _ranges(first: int, end: int, taken: Callable[[int], int]) -> list[Range]:
    """Find the edges among integers whose encoding only gets longer."""
    found, start = [], first
    while start < end:
        count = taken(start)
        stop = bisect_right(range(end), count, lo=start, key=taken)
        found.append(Range(count, start, stop - 1))
        start = stop
    return found


def _line(row: Row) -> str:
    counts = f"{row.lists.replicas:8}{row.lists.in_sync:9}{row.lists.offline:9} "
    return counts + "".join(f"{size:17,}" for size in row.sizes)


def _fill(fill: Fill) -> str:
    hits = (f"{size:,}{'*' if size == fill.kip else ' '}" for size in fill.sizes)
    return f"{fill.which:6} {fill.how:59}{''.join(f'{hit:>8}' for hit in hits)}".rstrip()


def _staircase(ranges: Sequence[Range]) -> list[str]:
    """Draw each range as long as its number of bytes, at their height; the axis is not linear."""
    starts = [2 * sum(r.bytes for r in ranges[:n]) for n in range(len(ranges) + 1)]
    width = starts[-1]
    lines = []
    for height in range(5, 0, -1):
        steps = [" "] * width
        for r, start, end in zip(ranges, starts, starts[1:], strict=False):
            if r.bytes == height:
                steps[start:end] = "-" * (end - start)
        edges = ", ".join(f"{r.first:,} to {r.last:,}" for r in ranges if r.bytes == height)
        lines.append(f"{height} | {''.join(steps)}  {edges}")
    zero = next(start + (r.first < 0) for r, start in zip(ranges, starts, strict=False) if r.last >= 0)
    return [*lines, f"  +-{'-' * width}", f"    {' ' * zero}0"]
