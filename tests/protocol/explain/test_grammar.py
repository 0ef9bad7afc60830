"""The grammar of the declarations equals the grammar in the protocol's documents.

The productions below are those of the 0.8 guide and of JoinGroup's page, one a line.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cloudevents_kafka.protocol.codec import interpreter
from cloudevents_kafka.protocol.errors import Unsupported
from cloudevents_kafka.protocol.explain.grammar import Production, production, text
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import ApiVersionsResponse, RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from cloudevents_kafka.protocol.messages.groups import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupResponse,
)
from cloudevents_kafka.protocol.messages.offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetCommitRequestBeta,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from cloudevents_kafka.protocol.messages.produce import MessageSetEntry, ProduceRequest, ProduceResponse
from cloudevents_kafka.protocol.messages.topics import MetadataRequest, MetadataResponse
from tests.protocol.captured import record_sets
from tests.support.cases import each

GUIDE = {
    MetadataRequest: """
        MetadataRequest => [TopicName]
        TopicName => string
    """,
    MetadataResponse: """
        MetadataResponse => [Broker][TopicMetadata]
        Broker => NodeId Host Port
        NodeId => int32
        Host => string
        Port => int32
        TopicMetadata => TopicErrorCode TopicName [PartitionMetadata]
        TopicErrorCode => int16
        PartitionMetadata => PartitionErrorCode PartitionId Leader Replicas Isr
        PartitionErrorCode => int16
        PartitionId => int32
        Leader => int32
        Replicas => [int32]
        Isr => [int32]
    """,
    ProduceRequest: """
        ProduceRequest => RequiredAcks Timeout [TopicName [Partition MessageSetSize MessageSet]]
        RequiredAcks => int16
        Timeout => int32
        Partition => int32
        MessageSetSize => int32
    """,
    ProduceResponse: """
        ProduceResponse => [TopicName [Partition ErrorCode Offset]]
        TopicName => string
        Partition => int32
        ErrorCode => int16
        Offset => int64
    """,
    FetchRequest: """
        FetchRequest => ReplicaId MaxWaitTime MinBytes [TopicName [Partition FetchOffset MaxBytes]]
        ReplicaId => int32
        MaxWaitTime => int32
        MinBytes => int32
        TopicName => string
        Partition => int32
        FetchOffset => int64
        MaxBytes => int32
    """,
    FetchResponse: """
        FetchResponse => [TopicName [Partition ErrorCode HighwaterMarkOffset MessageSetSize MessageSet]]
        TopicName => string
        Partition => int32
        ErrorCode => int16
        HighwaterMarkOffset => int64
        MessageSetSize => int32
    """,
    ListOffsetsRequest: """
        OffsetRequest => ReplicaId [TopicName [Partition Time MaxNumberOfOffsets]]
        ReplicaId => int32
        TopicName => string
        Partition => int32
        Time => int64
        MaxNumberOfOffsets => int32
    """,
    ListOffsetsResponse: """
        OffsetResponse => [TopicName [PartitionOffsets]]
        PartitionOffsets => Partition ErrorCode [Offset]
        Partition => int32
        ErrorCode => int16
        Offset => int64
    """,
    FindCoordinatorRequest: """
        ConsumerMetadataRequest => ConsumerGroup
        ConsumerGroup => string
    """,
    FindCoordinatorResponse: """
        ConsumerMetadataResponse => ErrorCode |CoordinatorId CoordinatorHost CoordinatorPort|
        ErrorCode => int16
        CoordinatorId => int32
        CoordinatorHost => string
        CoordinatorPort => int32
    """,
    OffsetCommitRequestBeta: """
        OffsetCommitRequest => ConsumerGroup [TopicName [Partition Offset TimeStamp Metadata]]
        ConsumerGroup => string
        TopicName => string
        Partition => int32
        Offset => int64
        TimeStamp => int64
        Metadata => string
    """,
    OffsetCommitResponse: """
        OffsetCommitResponse => [TopicName [Partition ErrorCode]]
        TopicName => string
        Partition => int32
        ErrorCode => int16
    """,  # the guide has one closing bracket more
    OffsetFetchRequest: """
        OffsetFetchRequest => ConsumerGroup [TopicName [Partition]]
        ConsumerGroup => string
        TopicName => string
        Partition => int32
    """,
    OffsetFetchResponse: """
        OffsetFetchResponse => [TopicName [Partition Offset Metadata ErrorCode]]
        TopicName => string
        Partition => int32
        Offset => int64
        Metadata => string
        ErrorCode => int16
    """,
    MessageSetEntry: """
        MessageSet => [Offset MessageSize Message]
        Offset => int64
        MessageSize => int32
        Message => Crc MagicByte Attributes Key Value
        Crc => int32
        MagicByte => int8
        Attributes => int8
        Key => bytes
        Value => bytes
    """,
}
# Names that the guide uses there and does not define.
UNDEFINED = {MetadataResponse: "TopicName", ProduceRequest: "TopicName", ListOffsetsResponse: "TopicName"}

HEADERS = [
    (
        (RequestHeader, 1),
        [
            "RequestMessage => ApiKey ApiVersion CorrelationId ClientId RequestMessage",
            "ApiKey => int16",
            "ApiVersion => int16",
            "CorrelationId => int32",
            "ClientId => string",
        ],
        ["Metadata", "Produce", "Fetch", "Offset", "OffsetCommit", "OffsetFetch"],
    ),
    (
        (ResponseHeader, 0),
        ["Response => CorrelationId ResponseMessage", "CorrelationId => int32"],
        ["Metadata", "Produce", "Fetch", "Offset", "OffsetCommit", "OffsetFetch"],
    ),
]

# JoinGroup's page, lines and indents as printed.
JOIN_GROUP_0 = """\
JoinGroupRequest => GroupId SessionTimeout MemberId ProtocolType GroupProtocols
  GroupId => string
  SessionTimeout => int32
  MemberId => string
  ProtocolType => string
  GroupProtocols => [ProtocolName ProtocolMetadata]
    ProtocolName => string
    ProtocolMetadata => bytes"""
JOIN_GROUP_1 = """\
JoinGroupRequest => GroupId SessionTimeout MemberId ProtocolType GroupProtocols
  GroupId => string
  SessionTimeout => int32
  RebalanceTimeout => int32
  MemberId => string
  ProtocolType => string
  GroupProtocols => [ProtocolName ProtocolMetadata]
    ProtocolName => string
    ProtocolMetadata => bytes"""
JOIN_GROUP_RESPONSE = """\
JoinGroupResponse => ErrorCode GenerationId GroupProtocol LeaderId MemberId Members
  ErrorCode => int16
  GenerationId => int32
  GroupProtocol => string
  LeaderId => string
  MemberId => string
  Members => [MemberId MemberMetadata]
    MemberId => string
    MemberMetadata => bytes"""

VERSIONS = [
    (message, version)
    for api in APIS.values()
    for message in (api.request, api.response)
    for version in range(api.versions.last + 1)
]


NULLABLE = {"ClientId", "Key", "Metadata", "Value"}
"""What may be null in the guide's versions, of which its grammar says nothing."""


def lines(printed: str) -> list[str]:
    return [line.strip() for line in printed.strip().splitlines()]


def in_guides_words(printed: list[str]) -> list[str]:
    """Leave out what may be null, as the guide does."""
    assert {line.split()[0] for line in printed if "nullable" in line} <= NULLABLE
    return [line.replace("=> nullable_", "=> ") for line in printed]


def tree(parent: Production) -> Iterator[Production]:
    yield parent
    for part in parent.parts:
        yield from tree(part)


@each("message", GUIDE, ids=lambda message: message.__name__)
def test_guide(message):
    """Version 0 is the guide's grammar, production by production, in its order."""
    expected = lines(GUIDE[message])
    printed = in_guides_words(lines(text(message, 0)))
    if message in UNDEFINED:
        assert not any(line.startswith(f"{UNDEFINED[message]} =>") for line in expected)
        printed.remove(f"{UNDEFINED[message]} => string")
    assert printed == expected


@pytest.mark.parametrize(("header", "expected", "messages"), HEADERS)
def test_headers(header, expected, messages):
    """The headers are the guide's, followed by one of its messages, or of the later ones."""
    *printed, either = lines(text(*header))
    assert in_guides_words(printed) == expected
    name, _, known = either.partition(" => ")
    kind = name.removesuffix("Message")
    assert printed[0].endswith(f" {kind}Message")
    assert {f"{message}{kind}" for message in messages} < set(known.split(" | "))


def test_api_keys():
    """The guide's requests have the guide's keys; 4 to 7, which only brokers use, are missing."""
    guides = {key: text(api.request, 0).split()[0] for key, api in APIS.items() if key <= 10}
    assert guides == {
        0: "ProduceRequest",
        1: "FetchRequest",
        2: "OffsetRequest",
        3: "MetadataRequest",
        8: "OffsetCommitRequest",
        9: "OffsetFetchRequest",
        10: "ConsumerMetadataRequest",
    }


def test_released_offset_commit():
    """OffsetCommit 0 of released brokers is the guide's without the timestamp."""
    expected = lines(GUIDE[OffsetCommitRequestBeta])
    expected[0] = expected[0].replace(" TimeStamp", "")
    expected.remove("TimeStamp => int64")
    assert in_guides_words(lines(text(OffsetCommitRequest, 0))) == expected


def test_join_group():
    """JoinGroup 0 and both responses equal the text of the page, with its indents."""
    assert text(JoinGroupRequest, 0) == JOIN_GROUP_0
    assert text(JoinGroupResponse, 0) == text(JoinGroupResponse, 1) == JOIN_GROUP_RESPONSE


def test_join_group_with_rebalance_timeout():
    """JoinGroup 1 equals the text of the page, whose first line omits a field that its fourth defines."""
    heading, rest = JOIN_GROUP_1.split("\n", 1)
    whole = heading.replace("SessionTimeout MemberId", "SessionTimeout RebalanceTimeout MemberId")
    assert whole != heading
    assert text(JoinGroupRequest, 1) == f"{whole}\n{rest}"


def test_indents():
    """The parts of a production follow it, indented by two columns."""
    printed = text(MetadataResponse, 0).splitlines()
    depth = {line.split()[0]: len(line) - len(line.lstrip()) for line in printed}
    assert depth["MetadataResponse"] == 0
    assert depth["Broker"] == depth["TopicMetadata"] == 2
    assert depth["NodeId"] == depth["PartitionMetadata"] == depth["TopicErrorCode"] == 4
    assert depth["Isr"] == 6


def test_flexible_versions():
    """Compact lengths and tagged fields, which the guide does not have, have their own notation."""
    heading, _, keys, *_ = text(ApiVersionsResponse, 3).splitlines()
    assert heading.endswith(
        "tagged_fields(0:SupportedFeatures 1:FinalizedFeaturesEpoch 2:FinalizedFeatures 3:ZkMigrationReady)"
    )
    assert keys == "  ApiKeys => compact[ApiKey MinVersion MaxVersion tagged_fields]"
    assert "  ClientId => nullable_string\n" in text(RequestHeader, 2)
    assert text(RequestHeader, 2).startswith(
        "RequestMessage => ApiKey ApiVersion CorrelationId ClientId tagged"
    )
    assert "SaslHandshake" not in text(RequestHeader, 2)
    assert "ApiVersionsResponse" not in text(ResponseHeader, 1)
    assert text(RequestHeader, 0).endswith("  CorrelationId => int32")


def test_null():
    """Strings, bytes and arrays that may be null say so, in each version by itself."""
    assert text(MetadataRequest, 0).startswith("MetadataRequest => [TopicName]\n")
    assert text(MetadataRequest, 1).startswith("MetadataRequest => nullable[TopicName]\n")
    assert text(MetadataRequest, 12).startswith("MetadataRequest => compact_nullable[")
    assert "TopicName => compact_nullable_string" in text(MetadataRequest, 12)
    assert "TopicName => compact_string" in text(MetadataRequest, 9)
    assert "Value => nullable_bytes" in text(MessageSetEntry, 0)
    assert "Records => nullable_records" in text(ProduceRequest, 3)


@each(("version", "records"), [(2, False), (3, True), (9, True)])
def test_record_batches(version, records):
    """From version 3 on, the records of Produce have their own name."""
    assert ("MessageSet" in text(ProduceRequest, version)) is not records
    assert ("Records => " in text(ProduceRequest, version)) is records


@each(("message", "version"), VERSIONS)
def test_all_versions(message, version):
    """In every version, each name on a right side is defined once, and each definition is used."""
    for parent in tree(production(message, version)):
        names = [part.name for part in parent.parts]
        assert len(names) == len(set(names)), parent
        words = "".join(sign if sign.isalnum() or sign == "_" else " " for sign in parent.body).split()
        used = {word for word in words if word[0].isupper()}
        assert set(names) == used - {"MessageSet"}, parent


def test_no_such_version():
    """A version that a message does not have raises `Unsupported`, which names the versions."""
    with pytest.raises(Unsupported, match="JoinGroupRequest must have a version in 0-9, got 10"):
        text(JoinGroupRequest, 10)


def test_message_sets():
    """Entries of captured message sets decode by their declaration, each exactly to its end."""
    walked = {0: 0, 1: 0}
    old = {"0.8.2.2", "old-apis-0.10.2.2"}
    for records in (one.data for one in record_sets() if one.fetched and one.where in old):
        at = 0
        while (end := at + 12 + int.from_bytes(records[at + 8 : at + 12], "big")) <= len(records):
            layout = layout_of(MessageSetEntry, records[at + 16])
            entry, after = interpreter.decode(layout, records, at)
            assert isinstance(entry, MessageSetEntry)
            assert (after, end) == (at + 12 + entry.message_size, after)
            assert interpreter.encode(layout, entry) == records[at:end]
            walked[entry.content.magic_byte] += 1
            at = end
    assert walked[0] > 20
    assert walked[1] > 5
