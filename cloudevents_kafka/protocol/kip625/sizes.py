"""The sizes of messages with variable-length integers (KIP-625), measured with the encoders.

The KIP's example is a MetadataResponse with one topic of 100 partitions on two brokers. `rows` returns its
sizes, `kip_matches` the messages that have the KIP's totals, `unsigned_ranges` and `zigzag_ranges` the size
of each integer. `table`, `histogram` and `svg` present them.

The message is declared in alternative A of the KIP, in which types depend on the version. Versions 0 to 9 are
Kafka's. Version 10 encodes the seven integers of a partition as unsigned varints, version 11 as zigzag
varints. Both are private to this module: the KIP is under discussion, Kafka's version 10 differs, and brokers
do not support them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Annotated, ClassVar, Final, NamedTuple

from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.kip625 import _svg
from cloudevents_kafka.protocol.messages.topics import MetadataResponseBroker
from cloudevents_kafka.protocol.schema import Boolean, Int16, Int32, MessageSpec, String, Structure, wire

FIXED: Final = 9
UNSIGNED: Final = 10
ZIGZAG: Final = 11

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

    spec: ClassVar = MessageSpec.of("0-11", flexible="9+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    brokers: list[MetadataResponseBroker]
    cluster_id: Annotated[String | None, wire("2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[Int32, wire("1+", ignorable=True)] = -1
    topics: list[TopicByType]
    cluster_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


PARTITIONS: Final = 100
KIP_TOTALS: Final = (3216, 1170, 4026)  # S3-M3
"""The KIP's bytes for fixed integers, unsigned varints at best, and at worst."""

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
) -> MetadataByType:
    """Return the message: two brokers, one topic, and a partition for each item of ``lists``."""
    # S3-M3: "100 partition topic replicated across two brokers"
    broker = numbers.broker
    partitions = [
        PartitionByType(
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
    return MetadataByType(
        brokers=[MetadataResponseBroker(node_id=broker + n, host="localhost", port=9092) for n in (0, 1)],
        controller_id=broker,
        topics=[TopicByType(error_code=ErrorCode.NONE, name=topic, partitions=partitions)],
    )


def size(message: MetadataByType, version: int) -> int:
    """Return the size of the body in bytes, in a version."""
    return len(compiler.encode(message, version))


def _sizes(lists: Sequence[ListLengths], topic: str = "topic") -> tuple[int, int, int, int]:
    """Return the sizes in the order of `ENCODINGS`."""
    small, large = (metadata(lists, numbers, topic) for numbers in (SMALL, LARGE))
    return size(small, FIXED), size(small, UNSIGNED), size(small, ZIGZAG), size(large, UNSIGNED)


def rows() -> list[Row]:
    """Return the sizes of the KIP's example: all replicas in sync, 1 of 2 in sync, the other offline."""
    cases = (ListLengths(2, 2), ListLengths(2, 1), ListLengths(2, 1, 1))
    return [Row(lists, _sizes([lists] * PARTITIONS)) for lists in cases]


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
        fixed, best, _, worst = _sizes(lists, "test-topic")
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
        "",
        "worst: broker and partition ids and epochs from 2^28 on, error codes from 2^14 on.",
        "",
        f"The KIP's totals, fixed {fixed:,}, best {best:,} and worst {worst:,}, are those of three messages",
        "(topic test-topic, 2 replicas each):",
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
    groups = [
        (f"{r.lists.replicas} replicas, {r.lists.in_sync} in sync, {r.lists.offline} offline", r.sizes)
        for r in rows()
    ]
    bars = f"Bytes of a MetadataResponse with {PARTITIONS} partitions on 2 brokers (worst: ids from 2^28)"
    return _svg.page(
        "Sizes with variable-length integers (KIP-625)",
        _svg.bars(bars, ENCODINGS, groups),
        _svg.steps("Bytes of an unsigned varint, by the 32-bit pattern", unsigned_ranges(), 1),
        _svg.steps("Bytes of a zigzag varint, by the integer", zigzag_ranges(), 2),
    )
