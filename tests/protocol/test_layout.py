"""The layout of a message in one version."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol.errors import Unsupported
from cloudevents_kafka.protocol.layout import Array, Layout, LengthPrefixed, default_of, layout_of
from cloudevents_kafka.protocol.messages.connection import RequestHeader
from cloudevents_kafka.protocol.messages.fetch import FetchRequest, FetchTopic, ReplicaState
from cloudevents_kafka.protocol.messages.topics import MetadataRequest
from cloudevents_kafka.protocol.schema import (
    INT32,
    NO_UUID,
    RECORDS,
    STRING,
    VARINTS,
    Fixed,
    fields_of,
    spec_of,
)
from tests.protocol.generated import CASES, IDS, Everything, EverythingInner
from tests.support.cases import each


def names(layout):
    return [field.name for field in layout.fields]


@each(
    ("version", "present"),
    [
        (0, ["replica_id", "max_wait_ms", "min_bytes", "topics"]),
        (3, ["replica_id", "max_wait_ms", "min_bytes", "max_bytes", "topics"]),
        (
            15,
            [
                *("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch"),
                *("topics", "forgotten_topics_data", "rack_id"),
            ],
        ),
    ],
)
def test_fields(version, present):
    """A layout has the fields of its version in order; others are absent, tagged ones are by tag."""
    layout = layout_of(FetchRequest, version)
    assert names(layout) == present
    assert {tag: field.name for tag, field in layout.tagged.items()} == (
        {0: "cluster_id", 1: "replica_state"} if version == 15 else {}
    )
    everywhere = {
        *present,
        *(field.name for field in layout.tagged.values()),
        *(f.name for f in layout.absent),
    }
    assert len(everywhere) == len(present) + len(layout.tagged) + len(layout.absent) == 12


def test_compact_lengths():
    """Lengths are compact from the first flexible version on, except for fields with ``flexible``."""
    assert layout_of(MetadataRequest, 8).fields[0].codec.compact is False
    assert layout_of(MetadataRequest, 9).fields[0].codec.compact is True
    client_id = layout_of(RequestHeader, 2).fields[3].codec
    assert client_id == LengthPrefixed(STRING, compact=False, nullable=True)
    assert layout_of(RequestHeader, 2).flexible


def test_names():
    """Types have the names of Kafka's documents."""
    assert LengthPrefixed(STRING, compact=True, nullable=True).name == "compact_nullable_string"
    assert LengthPrefixed(RECORDS, compact=False, nullable=False).name == "records"
    assert Array(INT32, compact=True, nullable=False).name == "compact_array"
    assert layout_of(FetchRequest, 0).name == "FetchRequest"


@each("version", range(4))
def test_types_by_version(version):
    """The encoding of a field may depend on the version (KIP-625)."""
    slots = {field.name: field.codec for field in layout_of(Everything, version).fields}
    signed = [Fixed("int64", "q", 8), VARINTS["unsigned_varint64"], VARINTS["varint64"], VARINTS["varint64"]]
    assert slots["signed"] == signed[version]
    lengths = slots["lengths"]
    assert isinstance(lengths, Array)
    assert lengths.compact is (version == 3)


def test_optional():
    """The bytes may end from the first optional field on, in the declared versions."""
    assert names(layout_of(Everything, 1))[layout_of(Everything, 1).optional_from :] == ["last", "very_last"]
    assert layout_of(Everything, 2).optional_from == len(layout_of(Everything, 2).fields)


@each("version", [-1, 19, 99])
def test_no_such_version(version):
    """A version that a message does not have raises `Unsupported` with those it has."""
    with pytest.raises(Unsupported, match=f"FetchRequest must have a version in 0-18, got {version}"):
        layout_of(FetchRequest, version)


def test_parts_of_messages():
    """A part of a message does not have a spec."""
    with pytest.raises(TypeError, match="FetchTopic must be a message"):
        spec_of(FetchTopic)


@each(("structure", "version"), CASES, ids=IDS)
def test_defaults(structure, version):
    """Each field has a default of its type or null; a mutable default is a new object each time."""

    def check(layout: Layout) -> None:
        for field in (*layout.fields, *layout.tagged.values()):
            first, second = default_of(field.declared), default_of(field.declared)
            assert first == second
            if isinstance(first, list | ReplicaState | EverythingInner):
                assert first is not second
            inner = field.codec.element if isinstance(field.codec, Array) else field.codec
            if isinstance(inner, Layout):
                check(inner)

    check(layout_of(structure, version))


@each(
    ("structure", "name", "default"),
    [
        (FetchRequest, "max_wait_ms", 0),
        (FetchRequest, "max_bytes", 2147483647),
        (FetchRequest, "cluster_id", None),
        (FetchRequest, "replica_state", ReplicaState(replica_id=-1, replica_epoch=-1)),
        (FetchRequest, "topics", []),
        (Everything, "id", NO_UUID),
        (Everything, "inner", EverythingInner(short=0, name="", numbers=[], extra=None)),
        (Everything, "text", "hello"),
        (Everything, "records", b""),
    ],
)
def test_default(structure, name, default):
    """A field without a declared default is empty or zero, in each part."""
    (field,) = (field for field in fields_of(structure) if field.name == name)
    assert default_of(field) == default
