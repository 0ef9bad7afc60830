"""The sizes of messages with variable-length integers (KIP-625), measured with the encoders.

The KIP's example is a MetadataResponse with one topic of 100 partitions on two brokers. `rows` returns its
sizes, `kip_matches` the messages that have the KIP's totals, `unsigned_ranges` and `zigzag_ranges` the size
of each integer. `table`, `histogram` and `picture` present them.

The message is declared in alternative A of the KIP, in which types depend on the version. Versions 0 to 9 are
Kafka's. Version 10 encodes the seven integers of a partition as unsigned varints, version 11 as zigzag
varints. Both are private to this module: the KIP is under discussion, Kafka's version 10 differs, and brokers
do not support them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Final, NamedTuple

from cloudevents_kafka.protocol import frames, varint
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.kip625 import _svg as svg
from cloudevents_kafka.protocol.messages.topics import MetadataResponseBroker
from cloudevents_kafka.protocol.schema import Boolean, Int16, Int32, MessageSpec, String, Structure, wire

FIXED: Final = 9
UNSIGNED: Final = 10
ZIGZAG: Final = 11

_SPEC: Final = MessageSpec.of("0-11", flexible="9+")

_TYPE16: Final = {"0-9": "int16", "10": "unsigned_varint16", "11+": "varint16"}
_TYPE32: Final = {"0-9": "int32", "10": "unsigned_varint32", "11+": "varint32"}


class PartitionByType(Structure, kw_only=True):
    """A partition, whose fields' types depend on the version."""

    error_code: Annotated[Int16, wire(type=_TYPE16)]
    partition_index: Annotated[Int32, wire(type=_TYPE32)]
    leader_id: Annotated[Int32, wire(type=_TYPE32)]
    leader_epoch: Annotated[Int32, wire("7+", ignorable=True, type=_TYPE32)] = -1
    replica_nodes: Annotated[list[Int32], wire(type=_TYPE32)]
    isr_nodes: Annotated[list[Int32], wire(type=_TYPE32)]
    offline_replicas: Annotated[list[Int32], wire("5+", ignorable=True, type=_TYPE32)] = []


class TopicByType(Structure, kw_only=True):
    """A topic and its partitions."""

    error_code: Int16
    name: String
    is_internal: Annotated[Boolean, wire("1+", ignorable=True)] = False
    partitions: list[PartitionByType]
    topic_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


class MetadataByType(Structure, kw_only=True):
    """The brokers and topics of a cluster."""

    spec: ClassVar = _SPEC

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    brokers: list[MetadataResponseBroker]
    cluster_id: Annotated[String | None, wire("2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[Int32, wire("1+", ignorable=True)] = -1
    topics: list[TopicByType]
    cluster_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


PARTITIONS: Final = 100
HOST: Final = "localhost"
TOPIC: Final = "topic"
KIP_TOPIC: Final = "test-topic"
KIP_TOTALS: Final = (3216, 1170, 4026)
"""The KIP's bytes for fixed integers, unsigned varints at best, and at worst."""

ENCODINGS: Final = ("fixed", "unsigned varint", "zigzag varint", "worst varint")

_CASES: Final = ((2, 2, 0), (2, 1, 0), (2, 1, 1))


class Lists(NamedTuple):
    """The lengths of the lists of a partition."""

    replicas: int
    in_sync: int
    offline: int = 0


class Numbers(NamedTuple):
    """The first broker id and partition index, and the epoch and error code of every partition."""

    broker: int = 0
    partition: int = 0
    epoch: int = 0
    error: int = 0


SMALL: Final = Numbers()
LARGE: Final = Numbers(broker=1 << 28, partition=1 << 28, epoch=1 << 28, error=1 << 14)
"""The first numbers whose unsigned varint has a byte more than the fixed integer, in all seven fields."""


class Row(NamedTuple):
    """The sizes of a message in the order of `ENCODINGS`; the worst is with `LARGE` numbers."""

    lists: Lists
    sizes: tuple[int, int, int, int]


class KipMatch(NamedTuple):
    """A message that has one of the KIP's totals, and its three sizes."""

    name: str
    partitions: str
    total: int
    lists: Sequence[Lists]
    sizes: tuple[int, int, int]


class Range(NamedTuple):
    """The integers from ``first`` to ``last``, both included, whose encoding has ``bytes`` bytes."""

    bytes: int
    first: int
    last: int


def metadata(lists: Sequence[Lists], numbers: Numbers = SMALL, topic: str = TOPIC) -> MetadataByType:
    """Return the message: two brokers, one topic, and a partition for each item of ``lists``."""
    partitions = [_partition(index, lengths, numbers) for index, lengths in enumerate(lists)]
    return MetadataByType(
        brokers=[MetadataResponseBroker(node_id=numbers.broker + n, host=HOST, port=9092) for n in (0, 1)],
        controller_id=numbers.broker,
        topics=[TopicByType(error_code=ErrorCode.NONE, name=topic, partitions=partitions)],
    )


def size(message: MetadataByType, version: int) -> int:
    """Return the size of the body in bytes, in a version."""
    return len(frames.encode(message, version))


def rows() -> list[Row]:
    """Return the sizes of the KIP's example: all replicas in sync, 1 of 2 in sync, the other offline."""
    return [_row(Lists(*case)) for case in _CASES]


def kip_matches() -> list[KipMatch]:
    """Return three messages, each of which has one of the KIP's totals."""
    cases = (
        ("fixed", "35 partitions with both replicas in sync, 65 with one", [2] * 35 + [1] * 65),
        ("best", "94 partitions with one of two replicas in sync, 6 with none", [1] * 94 + [0] * 6),
        ("worst", "50 partitions with both replicas in sync, 50 with one", [2] * 50 + [1] * 50),
    )
    return [
        KipMatch(name, partitions, total, lists, _three(lists))
        for (name, partitions, in_sync), total in zip(cases, KIP_TOTALS, strict=True)
        for lists in ([Lists(2, count) for count in in_sync],)
    ]


def unsigned_ranges() -> list[Range]:
    """Return the 32-bit patterns by the size of their unsigned varint; those from 2^31 on are negative."""
    return _ranges(0, 1 << 32, lambda n: len(varint.encode_unsigned(n - (n >> 31 << 32))))


def zigzag_ranges() -> list[Range]:
    """Return the 32-bit integers by the size of their zigzag varint, on both sides of 0."""
    above = _ranges(0, 1 << 31, lambda n: len(varint.encode_signed(n)))
    below = _ranges(0, 1 << 31, lambda n: len(varint.encode_signed(-1 - n)))
    around = Range(1, -1 - below[0].last, above[0].last)
    return [*(Range(r.bytes, -1 - r.last, -1 - r.first) for r in below[:0:-1]), around, *above[1:]]


def table() -> str:
    """Return the sizes as text."""
    lines = [
        f"MetadataResponse v9, bytes of the body: 2 brokers ({HOST}), 1 topic, {PARTITIONS} partitions.",
        "The encoding of seven integers of each partition differs; the rest is as in version 9.",
        "",
        "replicas  in sync  offline " + "".join(f"{name:>17}" for name in ENCODINGS),
        *(_line(row) for row in rows()),
        "",
        "worst: broker and partition ids and epochs from 2^28 on, error codes from 2^14 on.",
        "",
        "The KIP's totals, fixed {:,}, best {:,} and worst {:,}, are those of three messages".format(
            *KIP_TOTALS
        ),
        f"(topic {KIP_TOPIC}, 2 replicas each):",
        "",
        f"{'':66}{'fixed':>7}{'best':>8}{'worst':>8}",
        *(_match_line(match) for match in kip_matches()),
        "",
        "A message with all three sizes does not exist: beyond the 101 error codes of 100 partitions,",
        "the totals leave at most 178 bytes for other fields, but array lengths alone have 300.",
    ]
    return "\n".join(lines) + "\n"


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


def picture() -> str:
    """Return both as an SVG."""
    groups = [
        (f"{r.lists.replicas} replicas, {r.lists.in_sync} in sync, {r.lists.offline} offline", r.sizes)
        for r in rows()
    ]
    return svg.page(
        "Sizes with variable-length integers (KIP-625)",
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
    sizes = size(small, FIXED), size(small, UNSIGNED), size(small, ZIGZAG), size(large, UNSIGNED)
    return Row(lists, sizes)


def _three(lists: Sequence[Lists]) -> tuple[int, int, int]:
    small, large = (metadata(lists, numbers, KIP_TOPIC) for numbers in (SMALL, LARGE))
    return size(small, FIXED), size(small, UNSIGNED), size(large, UNSIGNED)


def _ranges(first: int, end: int, size_of: Callable[[int], int]) -> list[Range]:
    """Return the ranges of integers, whose sizes must ascend."""
    found, start = [], first
    while start < end:
        count = size_of(start)
        stop = bisect_right(range(end), count, lo=start, key=size_of)
        found.append(Range(count, start, stop - 1))
        start = stop
    return found


def _line(row: Row) -> str:
    counts = f"{row.lists.replicas:8}{row.lists.in_sync:9}{row.lists.offline:9} "
    return counts + "".join(f"{size:17,}" for size in row.sizes)


def _match_line(match: KipMatch) -> str:
    hits = (f"{size:,}{'*' if size == match.total else ' '}" for size in match.sizes)
    return f"{match.name:6} {match.partitions:59}{''.join(f'{hit:>8}' for hit in hits)}".rstrip()


def _staircase(ranges: Sequence[Range]) -> list[str]:
    """Return the lines of a drawing: each range at the height of its size; the axis is not linear."""
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
