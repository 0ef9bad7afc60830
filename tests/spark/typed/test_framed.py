"""Data that serializers of a schema registry have framed is read as its own deserializers read it."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", minversion="4.0")

from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from cloudevents_kafka.spark import data_as
from cloudevents_kafka.spark.typed.fetching import RegistryFailed, SchemaFetcher
from cloudevents_kafka.spark.typed.framed import Writer, check_payload, check_reader
from cloudevents_kafka.spark.typed.schemas import data_schema
from tests.support.cases import each
from tests.support.strategies import scaled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Sent = tuple[bytes | None, list[tuple[str, bytes]]]


def record(*fields: tuple[str, Any], name: str = "Order") -> dict[str, Any]:
    defaults = [{"default": field[2]} if len(field) > 2 else {} for field in fields]
    named = zip(fields, defaults, strict=True)
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": f[0], "type": f[1], **default} for f, default in named],
    }


def logical(base: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


PRICE = logical("bytes", "decimal", precision=20, scale=2)
VERSIONS = (
    record(("id", "int"), ("total", "float"), ("old", "string")),
    record(
        ("total", "long"), ("at", logical("long", "timestamp-millis")), ("id", "long"), ("note", "string")
    ),
    record(
        ("id", "long"),
        ("total", "double"),
        ("note", ["null", "string", "int"]),
        ("at", ["null", logical("long", "timestamp-micros")]),
        ("price", PRICE),
        ("list", {"type": "array", "items": "int"}),
        ("part", record(("size", "int"), ("more", "string"), name="Part")),
    ),
)
READER = record(
    ("id", "long"),
    ("note", ["null", "string"], None),
    ("total", "double"),
    ("at", ["null", logical("long", "timestamp-micros")], None),
    ("price", ["null", PRICE], None),
    ("list", {"type": "array", "items": "long"}, []),
    ("part", ["null", record(("color", "string", "red"), ("size", "long"), name="Part")], None),
)
_LONGS = st.integers(-(2**53), 2**53)
_INTS = st.integers(-(2**31), 2**31 - 1)
_TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
VALUES = (
    st.fixed_dictionaries({"id": _INTS, "total": st.floats(width=32, allow_nan=False), "old": st.text()}),
    st.fixed_dictionaries(
        {
            "id": _LONGS,
            "total": _LONGS,
            "note": st.text(),
            "at": _TIMES.map(lambda time: time.replace(microsecond=1000)),
        }
    ),
    st.fixed_dictionaries(
        {
            "id": _LONGS,
            "total": st.floats(allow_nan=False),
            "note": st.none() | st.text(),
            "at": st.none() | _TIMES,
            "price": st.decimals(-(10**15), 10**15, places=2),
            "list": st.lists(_INTS, max_size=3),
            "part": st.fixed_dictionaries({"size": _INTS, "more": st.text()}),
        }
    ),
)


@pytest.fixture
def registry() -> SchemaRegistryClient:
    """A mock schema registry in this process."""
    return SchemaRegistryClient.new_client({"url": "mock://orders"})


def context() -> SerializationContext:
    return SerializationContext("orders", MessageField.VALUE, [])


def serialize(serializer: Any, value: Any) -> Sent:
    made = context()
    return serializer(value, made), list(made.headers)


def avro(client: Any, schema: Any, *, header: bool = False) -> Any:
    conf = {"schema.id.serializer": header_schema_id_serializer} if header else {}
    return AvroSerializer(client, json.dumps(schema), conf=conf or None)


def read(
    spark: SparkSession, sent: Sequence[Sent], schema: Any, client: Any, **options: Any
) -> list[tuple[Any, str | None]]:
    rows = spark.createDataFrame(
        [(n, "t", payload, headers) for n, (payload, headers) in enumerate(sent)],
        "n INT, type STRING, data BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    )
    found = data_as(rows, schema, registry=client, **options).orderBy("n").collect()
    return [(row.value and row.value.asDict(recursive=True), row.data_error) for row in found]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return value


@pytest.mark.release  # test_json and test_avro_resolution are its sample
def test_three_versions_of_writers(spark: SparkSession, registry: Any) -> None:
    """Values by several versions, with an id or in a header a GUID, are those of the deserializer."""
    serializers = [avro(registry, schema, header=header) for schema in VERSIONS for header in (False, True)]
    sent: list[Sent] = []

    @settings(max_examples=scaled(60))
    @given(st.integers(0, 5).flatmap(lambda n: st.tuples(st.just(n), VALUES[n // 2])))
    def collect(drawn: tuple[int, Any]) -> None:
        sent.append(serialize(serializers[drawn[0]], drawn[1]))

    collect()
    deserialize = AvroDeserializer(registry, json.dumps(READER))
    found = read(spark, sent, READER, registry)
    for (payload, headers), (value, error) in zip(sent, found, strict=True):
        made = SerializationContext("orders", MessageField.VALUE, headers)
        assert error is None, payload
        assert plain(value) == plain(deserialize(payload, made)), payload


def test_json(spark: SparkSession, registry: Any) -> None:
    """JSON is read behind its frame, without one, and as strictly as other JSON."""
    schema = {
        "title": "O",
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    }
    writes = JSONSerializer(json.dumps(schema), registry)
    by_header = JSONSerializer(
        json.dumps(schema), registry, conf={"schema.id.serializer": header_schema_id_serializer}
    )
    framed, by_guid = serialize(writes, {"a": 1, "b": "x"}), serialize(by_header, {"a": 2})
    sent: list[Sent] = [framed, by_guid, (b'{"a":3}', []), ((framed[0] or b"")[:5] + b'{"a":"4"}', [])]
    sent += [(b'{"a":5}', [("__value_schema_id", b"?")])]
    found = read(spark, sent, "a INT", registry)
    assert [value and value["a"] for value, _ in found] == [1, 2, 3, None, None]
    assert found[3][1] == "data: /a must be an integer of 32 bits, got a text"
    assert found[4][1] == "data: it must have the id of its schema in front of it, or in a header, got none"
    rescued = read(spark, sent[:1], "a INT", registry, rescue=True)
    assert rescued[0][0] == {"a": 1, "_rescued": '{"/b":"x"}'}


def test_what_is_not_of_the_registry(spark: SparkSession, registry: Any) -> None:
    """An id that is unknown, of another kind, or absent, is a misfit with the id; so is other data."""
    first = serialize(avro(registry, VERSIONS[0]), {"id": 1, "total": 1.0, "old": ""})
    payload = first[0] or b""
    other = registry.register_schema("other", Schema('syntax = "proto3"; message A {}', "PROTOBUF"))
    lone = registry.register_schema("lone", Schema(json.dumps(record(("x", "long"))), "AVRO"))
    guid = uuid.UUID(int=7)
    cases: list[tuple[Sent, str | None]] = [
        (first, None),
        ((b"\0\xff\xff\xff\xff" + payload[5:], []), "a schema that the registry knows, got 4294967295"),
        ((b"\0\0\0\x03\xe7" + payload[5:], []), "a schema that the registry knows, got 999"),
        ((payload, [("__value_schema_id", b"\x01" + guid.bytes)]), f"registry knows, got {guid.hex}"),
        ((b"\0" + other.to_bytes(4, "big"), []), f"schema of Avro, got {other}, which is of PROTOBUF"),
        (
            (b"\0" + lone.to_bytes(4, "big") + b"\x02", []),
            "must be convertible to the reader's schema",
        ),
        ((payload[5:], []), "must have the id of its schema in front of it, or in a header, got none"),
        ((payload[:4], []), "must have the id of its schema in front of it, or in a header, got none"),
        ((payload[:-1], []), "ends too early"),
        ((payload + b"x", []), "wrong data: bytes follow its end"),
        ((None, []), "got none"),
    ]
    found = read(spark, [sent for sent, _ in cases], READER, registry)
    for (value, error), (sent, reason) in zip(found, cases, strict=True):
        assert (value is None) == (reason is not None), sent
        assert error is None if reason is None else reason in (error or ""), sent


class Counting:
    """A registry that counts, and fails if it is to."""

    def __init__(self, client: Any, error: Exception | None = None) -> None:
        self._client, self._error, self.asked = client, error, list[int]()

    def get_schema(self, number: int) -> Any:
        self.asked.append(number)
        if self._error is not None:
            raise self._error
        return self._client.get_schema(number)


def test_each_id_is_fetched_once_within_a_bound(spark: SparkSession, registry: Any) -> None:
    """The most frequent new ids are fetched, known ones never again; unknown ones may be known later."""
    one = registry.register_schema("one", Schema(json.dumps(VERSIONS[0]), "AVRO"))
    numbers = [one] * 3 + [900, 900, 901, 902]
    events = spark.createDataFrame(
        [("t", b"\0" + number.to_bytes(4, "big")) for number in numbers], "type STRING, data BINARY"
    )
    counting, schemas = Counting(registry), {"t": data_schema(READER)}
    fetcher = SchemaFetcher(counting, schemas, most=2)
    found = fetcher.fetch(events)
    assert (set(found), counting.asked) == ({str(one), "900"}, [one, 900])
    assert (found[str(one)].kind, found["900"]) == ("AVRO", Writer())
    assert set(fetcher.fetch(events)) == {str(one), "900", "901"}
    assert counting.asked == [one, 900, 900, 901]
    assert SchemaFetcher(counting, {"other": data_schema(READER)}).fetch(events) == {}
    reason = check_payload(data_schema(READER), b"\0\0\0\x03\x86", None, found, rescue=False).reason
    assert (
        reason == "data: it must have one of the schemas that are fetched for its batch, got another one, 902"
    )


@each(
    ("error", "final"),
    [
        (SchemaRegistryError(503, 50301, "later"), False),
        (SchemaRegistryError(401, 401, "who?"), True),
        (SchemaRegistryError(404, 404, "HTTP 404 Not Found"), True),
        (ConnectionError("token=secret-of-mine"), False),
    ],
)
def test_a_registry_that_fails(spark: SparkSession, error: Exception, *, final: bool) -> None:
    """The error says whether a later try may succeed; it has no secret."""
    events = spark.createDataFrame([("t", b"\0\0\0\0\1")], "type STRING, data BINARY")
    with pytest.raises(RegistryFailed, match="the schema registry must return the schema 1, got") as caught:
        data_as(events, READER, registry=Counting(None, error))
    assert caught.value.final is final
    assert "secret-of-mine" not in str(caught.value)


def test_a_closed_port(spark: SparkSession) -> None:
    """A registry of which no port is open is away."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    events = spark.createDataFrame([("t", b"\0\0\0\0\1")], "type STRING, data BINARY")
    with pytest.raises(RegistryFailed) as caught:
        data_as(events, READER, registry={"url": url, "max.retries": 0})
    assert not caught.value.final


class _Answers(BaseHTTPRequestHandler):
    """A registry that knows the schema 1."""

    def do_GET(self) -> None:  # the name that the server calls
        is_known = self.path.startswith("/schemas/ids/1?") or self.path == "/schemas/ids/1"
        answer = {"schema": json.dumps(VERSIONS[0])} if is_known else {"error_code": 40403, "message": "no"}
        body = json.dumps(answer).encode()
        self.send_response(200 if is_known else 404)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def test_a_registry_by_its_url() -> None:
    """The client asks a URL; a schema that is not found is unknown."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        fetcher = SchemaFetcher(f"http://127.0.0.1:{server.server_port}", {})
        found = [fetcher._fetch(name) for name in ("1", "2", "0" * 32)]
        server.shutdown()
    assert found == [Writer("AVRO", (json.dumps(VERSIONS[0]),)), Writer(), Writer()]


def test_references(registry: Any) -> None:
    """A schema that refers to others is read with them."""
    part = record(("size", "int"), name="Part")
    registry.register_schema("part", Schema(json.dumps(part), "AVRO"))
    order = json.dumps(record(("part", "Part"), ("again", "Part")))
    number = registry.register_schema("order", Schema(order, "AVRO", [SchemaReference("Part", "part", 1)]))
    writer = SchemaFetcher(registry, {})._fetch(str(number))
    assert writer.texts == (json.dumps(part), order)
    reader = data_schema(record(("part", part), ("again", "Part")))
    data = b"\0" + number.to_bytes(4, "big") + b"\x02\x04"
    assert check_payload(reader, data, None, {str(number): writer}, rescue=False).payload == b"\x02\x04"


def test_names_with_a_dot() -> None:
    """A schema whose names have a dot in front, which means no namespace, is read."""
    part = record(("size", "int"), name="Part")
    texts = json.dumps(part), json.dumps(record(("part", ".Part"), ("next", ["null", ".Order"])))
    reader = data_schema(record(("part", part), ("again", ["null", "Part"], None)))
    found = check_payload(reader, b"\0\0\0\0\1\x02\0", None, {"1": Writer("AVRO", texts)}, rescue=False)
    assert found.payload == b"\x02\0"


def test_wrong_use_is_refused(spark: SparkSession, registry: Any) -> None:
    """A stream, wrong settings, and a union whose value may be of several types are refused at the call."""
    for union in (["string", "int"], ["null", "int", "long"]):
        with pytest.raises(ValueError, match="unions of null and one type only, got "):
            check_reader(data_schema(record(("a", {"type": "array", "items": union}))))
    with pytest.raises(ValueError, match="must have settings of its client"):
        SchemaFetcher({"url": "http://x", "no.such": "1"}, {})
    stream = spark.readStream.format("rate").load().selectExpr("'t' AS type", "CAST('' AS BINARY) AS data")
    with pytest.raises(ValueError, match="registry must be None for a stream"):
        data_as(stream, "a INT", registry=registry)


def test_decimals_and_times_of_other_scales() -> None:
    """A decimal that its reader cannot have, or a time that Python cannot, is a misfit."""
    narrow, wide = (
        record(("p", logical("bytes", "decimal", precision=digits, scale=scale)))
        for digits, scale in ((4, 2), (8, 3))
    )
    found = Writer("AVRO", (json.dumps(narrow),)).read(b"\x02\x0a", data_schema(wide))
    assert found.payload == b"\x02\x64"  # 0.10 is 0.100
    for datum in (b"\x02\x0b", b"\x06\x10\x00\x00"):
        found = Writer("AVRO", (json.dumps(wide),)).read(datum, data_schema(narrow))
        assert "must be convertible to the reader's schema, got a number" in (found.reason or "")
    times = json.dumps(record(("t", logical("long", "timestamp-micros"))))
    late = Writer("AVRO", (times,)).read(b"\xfe" + b"\xff" * 8 + b"\x01", data_schema(times))
    assert late.reason == "data: /t must be of the type timestamp-micros, got a number that does not fit"


def test_arrays_of_doubles_are_refused() -> None:
    """Spark rounds them to 32 bits in silence, so a schema of Avro with one is refused with its place."""
    array = {"type": "array", "items": ["null", "double"]}
    with pytest.raises(ValueError, match=r"must have no array of double, .* got one at /part/list"):
        data_schema(record(("part", record(("list", array), name="Part"))))


def test_records_without_fields_are_refused() -> None:
    """Parquet has no such records, so a schema of Avro with one is refused with its place."""
    schema = record(("part", ["null", record(name="Part")]))
    with pytest.raises(ValueError, match="must have one field or more at /part, got none"):
        data_schema(schema)
    with pytest.raises(ValueError, match="must have one field or more at /, got none"):
        data_schema({"type": "record", "name": "Empty", "fields": ()})
