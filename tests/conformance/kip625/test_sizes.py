"""KIP-625: both of its declarations, the encoded sizes, and its totals."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar
from xml.etree import ElementTree as ET

import msgspec
import pytest
from conformance.kip625 import sizes
from conformance.kip625.sizes import (
    LARGE,
    PARTITIONS,
    SMALL,
    FirstNumbers,
    ListLengths,
)
from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.protocol import frames, varint
from cloudevents_kafka.protocol.codec import compiler, interpreter
from cloudevents_kafka.protocol.errors import Unencodable
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.topics import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from cloudevents_kafka.protocol.schema import (
    Boolean,
    Int16,
    Int32,
    Int64,
    MessageSpec,
    String,
    Structure,
    wire,
)
from tests.support.cases import each

FIXED, UNSIGNED, ZIGZAG = 9, 10, 11  # versions of the private messages; up to 9 they are Kafka's

# Alternative A, "Making FieldSpec's type version-dependent".
TYPE16 = {"0-9": "int16", "10": "unsigned_varint16", "11+": "varint16"}
TYPE32 = {"0-9": "int32", "10": "unsigned_varint32", "11+": "varint32"}


class PartitionByType(Structure, kw_only=True):
    error_code: Annotated[Int16, wire(type=TYPE16)]
    partition_index: Annotated[Int32, wire(type=TYPE32)]
    leader_id: Annotated[Int32, wire(type=TYPE32)]
    leader_epoch: Annotated[Int32, wire("7+", ignorable=True, type=TYPE32)] = -1
    replica_nodes: Annotated[list[Int32], wire(type=TYPE32)]
    isr_nodes: Annotated[list[Int32], wire(type=TYPE32)]
    offline_replicas: Annotated[list[Int32], wire("5+", ignorable=True, type=TYPE32)] = []  # noqa: RUF012


class TopicByType(Structure, kw_only=True):
    error_code: Int16
    name: String
    is_internal: Annotated[Boolean, wire("1+", ignorable=True)] = False
    partitions: list[PartitionByType]
    topic_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


class MetadataByType(Structure, kw_only=True):
    spec: ClassVar = MessageSpec.of("0-11", flexible="9+")

    throttle_time_ms: Annotated[Int32, wire("3+", ignorable=True)] = 0
    brokers: list[MetadataResponseBroker]
    cluster_id: Annotated[String | None, wire("2+", nullable="2+", ignorable=True)] = None
    controller_id: Annotated[Int32, wire("1+", ignorable=True)] = -1
    topics: list[TopicByType]
    cluster_authorized_operations: Annotated[Int32, wire("8+")] = -2147483648


# Alternative B, "Adding a separate encoding property".
ENCODING16 = {"0-9": "fixed16", "10": "unsigned16", "11+": "signed16"}
ENCODING32 = {"0-9": "fixed32", "10": "unsigned32", "11+": "signed32"}


class PartitionByEncoding(Structure, kw_only=True):
    error_code: Annotated[Int16, wire(encoding=ENCODING16)]
    partition_index: Annotated[Int32, wire(encoding=ENCODING32)]
    leader_id: Annotated[Int32, wire(encoding=ENCODING32)]
    leader_epoch: Annotated[Int32, wire("7+", ignorable=True, encoding=ENCODING32)] = -1
    replica_nodes: Annotated[list[Int32], wire(encoding=ENCODING32)]
    isr_nodes: Annotated[list[Int32], wire(encoding=ENCODING32)]
    offline_replicas: Annotated[list[Int32], wire("5+", ignorable=True, encoding=ENCODING32)] = []  # noqa: RUF012


class TopicByEncoding(TopicByType, kw_only=True):
    partitions: list[PartitionByEncoding]


class MetadataByEncoding(MetadataByType, kw_only=True):
    topics: list[TopicByEncoding]


WAYS = [
    (MetadataByType, TopicByType, PartitionByType),
    (MetadataByEncoding, TopicByEncoding, PartitionByEncoding),
    (MetadataResponse, MetadataResponseTopic, MetadataResponsePartition),
]
EDGES = [
    edge + step
    for bits in (6, 7, 13, 14, 20, 21, 27, 28)
    for edge in (1 << bits, -1 << bits)
    for step in (-1, 0)
]

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1) | st.sampled_from(EDGES)
partitions = st.fixed_dictionaries(
    {
        "error_code": int16,
        "partition_index": int32,
        "leader_id": int32,
        "replica_nodes": st.lists(int32, max_size=3),
        "isr_nodes": st.lists(int32, max_size=3),
    },
    optional={"leader_epoch": int32, "offline_replicas": st.lists(int32, max_size=3)},
)
brokers = st.builds(
    MetadataResponseBroker, node_id=int32, host=st.text(max_size=5), port=int32, rack=st.none()
)


def messages(way, partition_values, broker_values=()):
    """Return the message in one of the alternatives."""
    whole, topic, partition = WAYS[way]
    made = [partition(**values) for values in partition_values]
    return whole(brokers=list(broker_values), topics=[topic(error_code=0, name="t", partitions=made)])


@given(st.lists(partitions, max_size=3), st.lists(brokers, max_size=2), st.integers(0, ZIGZAG))
@example(
    [
        {
            "error_code": -1,
            "partition_index": -1,
            "leader_id": 2**31 - 1,
            "replica_nodes": EDGES,
            "isr_nodes": [],
        }
    ],
    [],
    10,
)
def test_both_ways_are_the_same(partition_values, broker_values, version):
    """Alternatives A and B encode all values to the same bytes in all versions, and decode them."""
    by_type, by_encoding = (messages(way, partition_values, broker_values) for way in (0, 1))
    raw = compiler.encode(by_type, version)
    assert compiler.encode(by_encoding, version) == raw
    assert interpreter.encode(layout_of(MetadataByType, version), by_type) == raw
    again = frames.decode_body(MetadataByType, version, raw)
    assert compiler.encode(again, version) == raw
    assert compiler.encode(frames.decode_body(MetadataByEncoding, version, raw), version) == raw
    if version >= 8:  # all fields are there
        assert again == by_type


@given(st.lists(partitions, max_size=3), st.lists(brokers, max_size=2), st.integers(0, FIXED))
def test_old_versions_stay(partition_values, broker_values, version):
    """Up to version 9, the bytes are those of Kafka's MetadataResponse."""
    private, real = (messages(way, partition_values, broker_values) for way in (0, 2))
    assert compiler.encode(private, version) == compiler.encode(real, version)


@given(partitions)
def test_bytes_by_hand(values):
    """In versions 10 and 11, a partition is seven integers as varints, with lists after their length + 1."""
    values = {"leader_epoch": -1, "offline_replicas": [], **values}
    for version, encode in ((UNSIGNED, varint.encode_unsigned), (ZIGZAG, varint.encode_signed)):
        lists = [values[name] for name in ("replica_nodes", "isr_nodes", "offline_replicas")]
        wanted = encode(values["error_code"], 16)
        wanted += b"".join(encode(values[name]) for name in ("partition_index", "leader_id", "leader_epoch"))
        wanted += b"".join(bytes([len(its) + 1]) + b"".join(map(encode, its)) for its in lists) + b"\0"
        raw, empty = (compiler.encode(messages(0, its), version) for its in ([values], []))
        assert len(raw) - len(empty) == len(wanted)
        assert wanted in raw


def test_java_type_is_the_widest():
    """The values of a field are those of its logical type, in any encoding."""
    for version in (FIXED, UNSIGNED, ZIGZAG):
        with pytest.raises(Unencodable, match="error_code"):
            compiler.encode(
                messages(
                    0,
                    [
                        {
                            "error_code": 1 << 15,
                            "partition_index": 0,
                            "leader_id": 0,
                            "replica_nodes": [],
                            "isr_nodes": [],
                        }
                    ],
                ),
                version,
            )


class Growing(Structure, kw_only=True):
    """A field may change its type, which alternative A of the KIP allows."""

    spec: ClassVar = MessageSpec.of("0-2")

    offset: Annotated[Int64, wire(type={"0": "int32", "1": "int64", "2": "varint64"})]


def test_types_may_widen():
    """A type that depends on the version may go from 32 to 64 bits; the value is the widest's."""
    raws = [compiler.encode(Growing(offset=-1), version) for version in range(3)]
    assert raws == [b"\xff" * 4, b"\xff" * 8, b"\1"]
    assert frames.decode_body(Growing, 2, compiler.encode(Growing(offset=1 << 40), 2)).offset == 1 << 40
    with pytest.raises(Unencodable, match="offset"):
        compiler.encode(Growing(offset=1 << 40), 0)


def expected(topic, partitions, entries):
    """Return the computed size with fixed integers; ``entries`` is the number of items in all lists.

    The message without partitions has 48 bytes: throttle time 4, brokers 1 + 2 * (id 4, length of host 1,
    port 4, rack 1, tags 1), cluster id 1, controller 4, topics 1, error 2, length of name 1, internal 1,
    partitions 1, operations 4, tags 1, operations 4, tags 1. A partition has 18: error 2, index, leader
    and epoch 4 each, three lengths, and the tags byte, which the KIP omits.
    """
    return 48 + 2 * len("localhost") + len(topic) + 18 * partitions + 4 * entries


def typed(message):
    """Return a message with types that depend on the version."""
    (topic,) = message.topics
    partitions = [PartitionByType(**msgspec.structs.asdict(partition)) for partition in topic.partitions]
    topics = [TopicByType(error_code=topic.error_code, name=topic.name, partitions=partitions)]
    return MetadataByType(brokers=message.brokers, controller_id=message.controller_id, topics=topics)


def test_table():
    """The encoded sizes of the KIP's example."""
    assert [(tuple(row.lists), *row.sizes) for row in sizes.rows()] == [
        ((2, 2, 0), 3471, 1271, 1307, 4271),
        ((2, 1, 0), 3071, 1171, 1207, 3771),
        ((2, 1, 1), 3471, 1271, 1307, 4271),
    ]


@given(
    st.lists(st.builds(ListLengths, *[st.integers(0, 5)] * 3), max_size=120),
    st.sampled_from([SMALL, LARGE, FirstNumbers(1001, 64, 3, 5)]),
    st.text("abc", max_size=20),
)
def test_sums(lists, numbers, topic):
    """With fixed integers the size is 48 + hosts + topic + 18 a partition + 4 an entry, for all numbers."""
    message = sizes.metadata(lists, numbers, topic)
    entries = sum(map(sum, lists))
    length = 1 if len(lists) < 127 else 2
    found = sizes.sizes(message)
    assert found[0] == expected(topic, len(lists), entries) + length - 1
    assert found == tuple(len(compiler.encode(typed(message), v)) for v in (FIXED, UNSIGNED, ZIGZAG))


def test_the_kip_omits_a_byte():
    """A partition has 18 bytes and 4 an entry, where the KIP counts 17; as varints 8 and 1, not 7."""
    found = [
        sizes.sizes(sizes.metadata(lists)) for lists in ([], [ListLengths(0, 0, 0)], [ListLengths(2, 2, 1)])
    ]
    for (none, one, filled), alone, entry in zip(zip(*found, strict=True), (18, 8), (4, 1), strict=False):
        assert (one - none, filled - one) == (alone, 5 * entry)


def test_real_version_9():
    """With fixed integers the sizes are those of our MetadataResponse in version 9, Kafka's own."""
    for row in sizes.rows():
        message = sizes.metadata([row.lists] * PARTITIONS)
        assert len(compiler.encode(message, 9)) == row.sizes[0]
        assert [len(p.replica_nodes) for p in message.topics[0].partitions] == [
            row.lists.replicas
        ] * PARTITIONS


def test_totals_of_the_kip():
    """Each of the KIP's totals is the size of one message, and of none of the others."""
    kip_matches = sizes.kip_matches()
    assert [match.sizes for match in kip_matches] == [
        (3216, 1211, 3951),
        (3052, 1170, 3746),
        (3276, 1226, 4026),
    ]
    assert tuple(match.total for match in kip_matches) == sizes.KIP_TOTALS
    assert [[size == match.total for size in match.sizes] for match in kip_matches] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    assert [sum(map(sum, match.lists)) for match in kip_matches] == [335, 294, 350]


def test_no_message_has_all_totals():
    """With x int32, y int16 and L other bytes, the three totals are too small for 100 partitions."""
    fixed, best, worst = sizes.KIP_TOTALS
    most_left = -1
    for int16s in range(PARTITIONS + 2):  # a code for each partition and one for the topic
        int32s = worst - fixed - int16s  # each grows by a byte at worst
        left = fixed - 4 * int32s - 2 * int16s
        saved_at_most = 3 * int32s + int16s
        if left >= 0 and saved_at_most >= fixed - best:
            most_left = max(most_left, left)
    assert most_left == 178
    assert most_left < 3 * PARTITIONS  # the lengths of three lists each


def test_ranges():
    """The edges cover all 32-bit integers without a gap; the KIP's are off by one."""
    assert [tuple(r) for r in sizes.unsigned_ranges()] == [
        (1, 0, 127),
        (2, 128, 16_383),
        (3, 16_384, 2_097_151),
        (4, 2_097_152, 268_435_455),
        (5, 268_435_456, 4_294_967_295),
    ]
    assert [tuple(r) for r in sizes.zigzag_ranges()] == [
        (5, -2_147_483_648, -134_217_729),
        (4, -134_217_728, -1_048_577),
        (3, -1_048_576, -8_193),
        (2, -8_192, -65),
        (1, -64, 63),
        (2, 64, 8_191),
        (3, 8_192, 1_048_575),
        (4, 1_048_576, 134_217_727),
        (5, 134_217_728, 2_147_483_647),
    ]
    for ranges in (sizes.unsigned_ranges(), sizes.zigzag_ranges()):
        assert all(before.last + 1 == after.first for before, after in pairwise(ranges))


@each(("value", "count"), [(-1, 5), (-(2**31), 5), (2**31 - 1, 5), (127, 1)])
def test_negative_unsigned(value, count):
    """A negative integer has 5 bytes as an unsigned varint, also error code -1."""
    assert len(varint.encode_unsigned(value)) == count


def test_texts():
    """The texts have all numbers, fit a terminal and end with a newline."""
    table, histogram = sizes.table(), sizes.histogram()
    for row in sizes.rows():
        assert all(f"{size:,}" in table for size in row.sizes)
    assert [table.count(f"{total:,}*") for total in sizes.KIP_TOTALS] == [1, 1, 1]
    for found in [*sizes.unsigned_ranges(), *sizes.zigzag_ranges()]:
        assert f"{found.first:,} to {found.last:,}" in histogram
    assert max(map(len, table.splitlines())) <= 100
    assert all(line == line.rstrip() for line in (table + histogram).splitlines())
    assert table.endswith(".\n")
    assert histogram.endswith("0\n")


def test_staircases():
    """The histograms have the KIP's shapes: rising from 0, and falling to 0 and rising again."""
    lines = sizes.histogram().splitlines()
    assert lines[1:8] == [
        "5 |                     ----------  268,435,456 to 4,294,967,295",
        "4 |             --------            2,097,152 to 268,435,455",
        "3 |       ------                    16,384 to 2,097,151",
        "2 |   ----                          128 to 16,383",
        "1 | --                              0 to 127",
        "  +-------------------------------",
        "    0",
    ]
    for line in lines[10:15]:
        bars = line[4:62]
        assert bars == bars[::-1]
        assert bars.strip("- ") == ""


def test_picture():
    """The picture is well-formed XML, and contains every size and every edge."""
    root = ET.fromstring(sizes.svg())
    space = "{http://www.w3.org/2000/svg}"
    texts = {element.text for element in root.iter(f"{space}text")}
    assert {f"{size:,}" for row in sizes.rows() for size in row.sizes} <= texts
    for found in [*sizes.unsigned_ranges(), *sizes.zigzag_ranges()]:
        assert {f"{found.first:,}", f"{found.last:,}"} <= texts
    assert {f"{total:,}" for total in sizes.KIP_TOTALS} | {"the KIP's own totals"} <= texts
    width = float(root.attrib["width"])
    for box in root.iter(f"{space}rect"):
        assert float(box.get("x", 0)) + float(box.attrib["width"]) <= width
        assert float(box.attrib["height"]) > 0


def test_labels_do_not_touch():
    """The labels of a line of the picture have space between them, at 0.58 of their height a letter."""
    space = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(sizes.svg())
    for chart in root.iter(f"{space}g"):
        rows = {}
        for label in chart.iter(f"{space}text"):
            wide = len(label.text) * float(label.attrib["font-size"]) * 0.58
            left = float(label.attrib["x"]) - (wide / 2 if label.attrib["text-anchor"] == "middle" else 0)
            rows.setdefault(label.attrib["y"], []).append((left, left + wide))
        for row in rows.values():
            assert all(before[1] + 2 < after[0] for before, after in pairwise(sorted(row))), row
            assert max(row)[1] <= float(root.attrib["width"])


def test_private_versions():
    """The versions with varints are private: they declare no API of Kafka."""
    ours = {MetadataByType, MetadataByEncoding}
    assert {structure.spec.key for structure in ours} == {-1}
    assert ours.isdisjoint(api.response for api in APIS.values())
