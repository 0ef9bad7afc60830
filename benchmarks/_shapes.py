"""The shapes of events: ways to read and to write them, as many producers and users do.

`shapes` times each next to another way, mostly the cloudevents SDK, and
`tests/test_function_calls.py` counts its function calls, so that a slow way of some shape fails a
test. The number next to a shape is its bound: a tenth above what Python 3.11 to 3.13 need.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any, Final

from _sdk import JSON, message_of
from cloudevents.core.bindings import kafka
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka, to_binary, to_structured
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1 import kafka as kafka_v1
from cloudevents.v1.http import CloudEvent as OldCloudEvent
from cloudevents.v1.kafka import to_binary as old_to_binary
from cloudevents.v1.kafka import to_structured as old_to_structured
from converters import ATTRIBUTES, DATA, TIME, TIME_TEXT
from formats import avro_pairs, protobuf_pairs

from cloudevents_kafka import (
    Event,
    EventProducer,
    Record,
    decode,
    from_record,
    partition_key,
    sdk,
    to_record,
)
from cloudevents_kafka.sdk import v1 as sdk_v1

Work = Callable[[], object]
Mapper = Callable[[Any], str | bytes | None] | None

PRODUCERS: Final = Path(__file__).parents[1] / "spec-conformance" / "vectors" / "real-producers.json"


@dataclass(frozen=True)
class Group:
    """Shapes with one target: the ratio of each shape, and the median of their ratios."""

    title: str
    other: str
    each: float | None
    median: float | None


GROUPS: Final = {
    "json": Group("read structured JSON, data untouched", "SDK", 3, 4),
    "binary": Group("read binary mode, data untouched", "SDK", 3, 5),
    "lenient": Group("read leniently what breaks no rule", "strict", 0.7, None),
    "producers": Group("read leniently what known producers send", "SDK", 1, 1.5),
    "write": Group("make and write an event", "SDK", 1.7, 2.5),
    "sdk": Group("write an event of the SDK", "SDK", 0.9, None),
    "names": Group("the SDK's functions under their own names", "SDK", 0.6, 1),
    "formats": Group("read and write Avro and Protobuf", "library", None, None),
}


@dataclass(frozen=True)
class Shape:
    """One way to read or write an event, and the way that it is compared with.

    ``calls`` is the bound for the function calls of ``ours``. ``is_nearest`` is whether the SDK cannot
    read the record, so that ``theirs`` reads the nearest that it can. ``is_plain`` marks the shapes
    that have always been fast.
    """

    group: str
    name: str
    calls: int
    ours: Work
    theirs: Work
    is_nearest: bool = False
    is_plain: bool = False


def shapes(*, keys: bool = True) -> list[Shape]:
    """Return all shapes; ``keys`` is whether records have keys, which the SDK sets from the event."""
    return [
        *_json(keys=keys),
        *_binary(keys=keys),
        *_lenient(),
        *_producers(),
        *_write(keys=keys),
        *_sdk(keys=keys),
        *_names(),
        *_formats(),
    ]


# --- JSON ------------------------------------------------------------------------------

Members = dict[str, Any]

HEAD: Final[Members] = {"specversion": "1.0", **ATTRIBUTES, "time": TIME_TEXT}
TRACE: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
KEY: Final = b"sensor-12"
OFFSET: Final = datetime(2018, 4, 5, 19, 31, tzinfo=timezone(timedelta(hours=2)))
PICTURE: Final = b"\x89PNG\r\n" + bytes(range(150))
JSON_TYPE: Final = b"application/cloudevents+json"


def dense(members: Members) -> bytes:
    """Return JSON without blanks, as this library and the SDKs for Java and Go write it."""
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


def spaced(members: Members) -> bytes:
    """Return JSON as Python's module writes it: with blanks, in ASCII."""
    return json.dumps(members).encode()


def envelope(data: Any = DATA, **more: Any) -> Members:
    """Return the members of an event in JSON, data last; None removes a member."""
    members = {**HEAD, **more, "data": data}
    return {name: value for name, value in members.items() if value is not None}


DATA_FIRST: Final[Members] = {"data": DATA, **HEAD}
DATA_IN_THE_MIDDLE: Final = {name: envelope()[name] for name in sorted(HEAD | {"data": DATA})}
SENDER: Final[Members] = {"specversion": "1.0", "id": "5929aaac-a5e2-4ca1-859c-edfe73f11565"}

DAPR: Final[Members] = {
    "data": {"orderId": "100"},
    "datacontenttype": "application/json; charset=utf-8",
    "id": "5929aaac-a5e2-4ca1-859c-edfe73f11565",
    "pubsubname": "orderpubsub",
    "source": "checkout",
    "specversion": "1.0",
    "time": "2020-09-23T06:23:21Z",
    "topic": "orders",
    "traceid": TRACE,
    "traceparent": TRACE,
    "type": "com.dapr.event.sent",
}
DEBEZIUM: Final[Members] = {
    "id": 'name:test_server;lsn:29274832;txId:565;sequence:["29274696","29274832"]',
    "source": "/debezium/postgresql/test_server",
    "specversion": "1.0",
    "type": "io.debezium.connector.postgresql.datachangeevent",
    "time": "2020-01-13T13:55:39.738Z",
    "datacontenttype": "application/json",
    "iodebeziumop": "r",
    "iodebeziumversion": "3.0.0.Final",
    "iodebeziumconnector": "postgresql",
    "iodebeziumname": "test_server",
    "iodebeziumtsms": "1578923739738",
    "iodebeziumsnapshot": "true",
    "iodebeziumdb": "postgres",
    "iodebeziumsequence": '["29274696","29274832"]',
    "iodebeziumschema": "s1",
    "iodebeziumtable": "a",
    "iodebeziumlsn": "29274832",
    "iodebeziumxmin": None,
    "iodebeziumtxid": "565",
    "data": {"before": None, "after": {"pk": 1, "aa": 1}},
}
KNATIVE: Final[Members] = {
    **SENDER,
    "source": "/apis/v1/namespaces/shop/pingsources/p",
    "type": "dev.knative.sources.ping",
    "time": "2021-03-15T08:00:00.217953541Z",
    "datacontenttype": "application/json",
    "knativearrivaltime": "2021-03-15T08:00:00.219843Z",
    "knativehistory": "default-kne-trigger-kn-channel.shop.svc.cluster.local",
    "traceparent": TRACE,
    "data": {"message": "Hello world!"},
}
GOOGLE: Final[Members] = {
    **SENDER,
    "source": "//cloudaudit.googleapis.com/projects/shop/logs/data_access",
    "type": "google.cloud.audit.log.v1.written",
    "datacontenttype": "application/json; charset=utf-8",
    "dataschema": "https://googleapis.github.io/google-cloudevents/jsonschema/LogEntryData.json",
    "subject": "storage.googleapis.com/projects/_/buckets/orders/objects/a.csv",
    "time": "2020-09-29T11:32:01.123456789Z",
    "recordedtime": "2020-09-29T11:32:02Z",
    "methodname": "storage.objects.create",
    "resourcename": "projects/_/buckets/orders/objects/a.csv",
    "servicename": "storage.googleapis.com",
    "data": {"protoPayload": {"status": {}, "methodName": "storage.objects.create"}},
}
AZURE: Final[Members] = {
    "source": "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/a",
    "subject": "blobServices/default/containers/c/blobs/file.txt",
    "type": "Microsoft.Storage.BlobCreated",
    "time": "2021-11-18T15:13:39.4589254Z",
    **SENDER,
    "data": {"api": "PutBlockList", "contentLength": 447, "blobType": "BlockBlob"},
}
OWN_EXTENSIONS: Final = {f"comexample{letter}": f"value of {letter}" for letter in "abcdefghijkl"}
ITEM: Final = {"name": "item", "price": 1.25, "tags": ["a", "b"], "note": None, "ok": True}
BLANKS: Final = spaced(envelope()).replace(b'", "', b'"\r\n\t, "').replace(b'": "', b'" : "')

JSON_SHAPES: Final[list[tuple[str, int, bytes]]] = [
    ("dense, data last", 40, dense(envelope())),
    ("blanks, as Python writes it", 40, spaced(envelope())),
    ("indented", 40, json.dumps(envelope(), indent=2).encode()),
    ("blanks of all kinds", 50, b"\n " + BLANKS + b"\r\n"),
    ("data first", 50, spaced(DATA_FIRST)),
    ("dense, data first", 50, dense(DATA_FIRST)),
    ("dense, data in the middle", 50, dense(DATA_IN_THE_MIDDLE)),
    ("an escape in an attribute", 50, spaced(envelope(subject='a "b" \u00e9'))),
    ("escapes of HTML, as Go writes them", 55, dense(envelope()).replace(b"/lines/4", b"/4?a=1\\u0026b=2")),
    ("an attribute in UTF-8", 50, dense(envelope(subject="s\u00e9nsor"))),
    ("a no-break space in an attribute", 50, dense(envelope(subject="sensor\xa01"))),
    ("data in UTF-8", 60, dense(envelope({"note": "s\u00e9nsor \u65e5\u672c"}))),
    ("an Integer", 60, spaced(envelope(seq=5))),
    ("a Boolean", 60, dense(envelope(flag=True))),
    ("Binary as base64", 50, dense(envelope(dssematerial="TWFuVFdGdQ=="))),
    ("sampledrate", 65, spaced(envelope(sampledrate=5))),
    ("expirytime and recordedtime", 60, dense(envelope(expirytime=TIME_TEXT, recordedtime=TIME_TEXT))),
    ("severity", 70, dense(envelope(severitynumber=9, severitytext="INFO"))),
    ("tracestate", 45, dense(envelope(tracestate="congo=t61rcWkgMzE"))),
    ("a null member", 55, spaced({**envelope(), "dataschema": None})),
    ("data is null", 40, dense({**envelope(), "data": None})),
    ("a dozen extensions", 40, dense(envelope(**OWN_EXTENSIONS))),
    ("no data", 40, spaced(envelope(None))),
    ("four attributes", 35, dense({"id": "1", "source": "/s", "specversion": "1.0", "type": "t"})),
    ("text data", 60, spaced(envelope("hello " * 30, datacontenttype="text/plain"))),
    (
        "text data in UTF-8",
        60,
        dense(envelope("h\u00e9llo " * 30, datacontenttype="text/plain; charset=utf-8")),
    ),
    ("text data with escapes", 60, spaced(envelope('<a b="c"/>\n' * 9, datacontenttype="application/xml"))),
    ("JSON text as data", 40, dense(envelope("hello"))),
    ("a number as data", 40, spaced(envelope(17.5))),
    (
        "data_base64",
        45,
        dense(
            {
                **HEAD,
                "datacontenttype": "image/png",
                "data_base64": base64.b64encode(PICTURE).decode(),
            }
        ),
    ),
    ("data with members of the same names", 40, spaced(envelope({"data": {"data": 1, "id": "2"}}))),
    ("time with an offset", 40, spaced(envelope(time="2018-04-05T17:31:00+02:00"))),
    ("time with nanoseconds", 40, dense(envelope(time="2018-04-05T17:31:00.123456789Z"))),
    ("a content type with a charset", 40, dense(envelope(datacontenttype="application/json; charset=utf-8"))),
    ("no content type", 35, spaced(envelope(datacontenttype=None))),
    ("a dataschema", 40, dense(envelope(dataschema="https://registry.example/schemas/17#v2"))),
    ("7 KB of data", 40, spaced(envelope([ITEM] * 100))),
    ("100 KB of data", 40, dense(envelope([ITEM] * 1400))),
    ("Dapr, with headers", 50, spaced(DAPR)),
    ("Debezium, with headers", 60, dense(DEBEZIUM)),
    ("Knative", 40, dense(KNATIVE)),
    ("Google Cloud Audit Logs", 50, spaced(GOOGLE)),
    ("Azure Event Grid", 35, dense(AZURE)),
]


def in_json(value: bytes, content_type: bytes = JSON_TYPE, key: bytes | None = KEY) -> Record:
    return Record(key=key, value=value, headers=[("content-type", content_type)])


def _json(*, keys: bool) -> Iterator[Shape]:
    for name, calls, value in JSON_SHAPES:
        record = in_json(value, key=KEY if keys else None)
        yield _read("json", name, calls, record, is_plain=name == "dense, data last")
    content_type = b"application/cloudevents+json; charset=UTF-8"
    parameters = in_json(dense(envelope()), content_type, KEY if keys else None)
    yield _read("json", "the header has a charset", 40, parameters)
    without_key = in_json(dense(envelope()), key=None)
    yield _read("json", "dense, a record without a key", 40, without_key, is_plain=True)


def _read(group: str, name: str, calls: int, record: Record, *, is_plain: bool = False) -> Shape:
    message, is_nearest = message_of(record)
    lenient = group == "producers"
    ours: Work = (lambda: from_record(record, lenient=True)) if lenient else (lambda: from_record(record))
    return Shape(group, name, calls, ours, lambda: from_kafka(message, JSON), is_nearest, is_plain)


# --- binary mode -----------------------------------------------------------------------


def ce(members: Members) -> dict[str, bytes | None]:
    """Return the headers of texts."""
    return {
        "content-type" if name == "datacontenttype" else f"ce_{name}": value.encode()
        for name, value in members.items()
    }


PLAIN: Final = ce(HEAD)
ABSENT: Final = dict.fromkeys(("ce_subject", "ce_dataschema", "ce_schemaurl", "ce_datacontentencoding"))
FOREIGN: Final[dict[str, bytes | None]] = {"traceparent": TRACE.encode(), "b3": b"1", "retries": b"0"}
SERIALIZED: Final = dense(DATA)

BINARY_SHAPES: Final[list[tuple[str, int, dict[str, bytes | None], bytes | None]]] = [
    ("plain", 35, PLAIN, SERIALIZED),
    ("four attributes", 25, ce({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}), b"x"),
    ("sampledrate", 40, {**PLAIN, "ce_sampledrate": b"5"}, SERIALIZED),
    ("severity", 50, {**PLAIN, "ce_severitynumber": b"9", "ce_severitytext": b"INFO"}, SERIALIZED),
    ("expirytime", 40, {**PLAIN, "ce_expirytime": TIME_TEXT.encode()}, SERIALIZED),
    ("deprecated", 40, {**PLAIN, "ce_deprecated": b"true"}, SERIALIZED),
    ("Binary as base64", 45, {**PLAIN, "ce_dssematerial": b"TWFuVFdGdQ=="}, SERIALIZED),
    ("tracestate", 40, {**PLAIN, "ce_tracestate": b"congo=t61rcWkgMzE"}, SERIALIZED),
    ("a null header", 35, {**PLAIN, "ce_x": None}, SERIALIZED),
    ("nulls for absent attributes", 30, {**PLAIN, **ABSENT}, SERIALIZED),
    ("ce_datacontenttype is a copy", 40, {**PLAIN, "ce_datacontenttype": b"application/json"}, SERIALIZED),
    (
        "JavaScript: a copy and nulls",
        40,
        {**PLAIN, **ABSENT, "ce_datacontenttype": b"application/json"},
        SERIALIZED,
    ),
    ("foreign headers", 35, {**PLAIN, **FOREIGN}, SERIALIZED),
    ("twenty foreign headers", 35, {**PLAIN, **{f"x-{n}": b"v" for n in range(20)}}, SERIALIZED),
    ("a foreign header of any bytes", 35, {**PLAIN, "trace": b"\xff\xfe"}, SERIALIZED),
    ("an attribute in UTF-8", 30, {**PLAIN, "ce_subject": "s\u00e9nsor".encode()}, SERIALIZED),
    ("a no-break space", 35, {**PLAIN, "ce_subject": "sensor\xa01".encode()}, SERIALIZED),
    ("quotation marks", 35, {**PLAIN, "ce_subject": b'a "b" \\c'}, SERIALIZED),
    ("a dozen extensions", 45, {**PLAIN, **ce(OWN_EXTENSIONS)}, SERIALIZED),
    ("time with an offset", 35, {**PLAIN, "ce_time": b"2018-04-05T17:31:00+02:00"}, SERIALIZED),
    ("a dataschema", 35, {**PLAIN, "ce_dataschema": b"https://registry.example/schemas/17"}, SERIALIZED),
    ("no data", 35, PLAIN, None),
    ("text data", 35, {**PLAIN, "content-type": b"text/plain; charset=utf-8"}, b"hello " * 30),
    ("bytes", 35, {**PLAIN, "content-type": b"image/png"}, PICTURE),
    ("100 KB of data", 35, PLAIN, dense([ITEM] * 1400)),  # type: ignore[arg-type]
    ("Knative", 35, ce({name: text for name, text in KNATIVE.items() if name != "data"}), b"{}"),
    ("Google Cloud Audit Logs", 45, ce({name: t for name, t in GOOGLE.items() if name != "data"}), b"{}"),
]


def _binary(*, keys: bool) -> Iterator[Shape]:
    for name, calls, headers, value in BINARY_SHAPES:
        record = Record(key=KEY if keys else None, value=value, headers=list(headers.items()))
        yield _read("binary", name, calls, record, is_plain=name == "plain")


# --- lenient reading -------------------------------------------------------------------

VALID: Final[list[tuple[str, int, Record]]] = [
    ("JSON, dense", 40, in_json(dense(envelope()))),
    ("JSON, blanks", 40, in_json(spaced(envelope()))),
    ("JSON, text data", 45, in_json(spaced(envelope("hello", datacontenttype="text/plain")))),
    ("JSON, Dapr", 50, in_json(spaced(DAPR))),
    ("JSON, Debezium", 55, in_json(dense(DEBEZIUM))),
    ("binary, plain", 35, Record(value=SERIALIZED, headers=list(PLAIN.items()))),
    ("binary, sampledrate", 45, Record(headers=[*PLAIN.items(), ("ce_sampledrate", b"5")])),
    ("binary, a null header", 35, Record(headers=[*PLAIN.items(), ("ce_x", None)])),
    ("binary, foreign headers", 35, Record(headers=[*PLAIN.items(), *FOREIGN.items()])),
    (
        "binary, JavaScript",
        40,
        Record(headers=[*PLAIN.items(), *ABSENT.items(), ("ce_datacontenttype", b"application/json")]),
    ),
]


def _lenient() -> Iterator[Shape]:
    for name, calls, record in VALID:
        yield Shape("lenient", name, calls, _lenient_decode(record), _strict_decode(record))


def _lenient_decode(record: Record) -> Work:
    return lambda: decode(record, lenient=True)


def _strict_decode(record: Record) -> Work:
    return lambda: decode(record)


# The bounds of the producers' records by their names; other records have the last one.
PRODUCER_CALLS: Final[dict[str, int]] = {
    "Dapr, dense": 60,
    "Dapr, an empty tracestate": 80,
    "Debezium, a dozen extensions": 75,
    "javascript-binary": 40,
    "csharp-structured": 40,
    "csharp-binary-no-data": 25,
    "smallrye-binary": 30,
    "spring-binary": 75,
    "python-v1-structured": 60,
    "go-binary": 30,
    "go-confluent-old": 80,
    "knative-lifted": 30,
    "confluent-schema-in-header": 30,
    "confluent-prefix": 30,
    "opentelemetry-headers": 25,
    "debezium-json": 125,
    "debezium-transaction": 120,
    "debezium-avro-data": 65,
    "confluent-audit-log": 195,
    "spring-http-prefix": 90,
    "spring-amqp-prefix": 80,
    "spring-quoted-source": 80,
    "smallrye-structured": 35,
    "smallrye-propagated": 60,
    "knative-lifted-empty-key": 110,
    "csharp-partition-key": 30,
    "csharp-structured-partition-key": 40,
    "javascript-structured": 45,
    "javascript-binary-no-data": 30,
    "python-v1-structured-no-type": 55,
    "python-v1-structured-xml": 105,
    "python-v1-structured-no-header": 45,
    "python-v1-binary-null": 30,
    "python-v1-binary-text": 30,
    "python-v2-binary-types": 105,
    "python-v2-binary-no-data": 30,
    "azure-event-grid": 115,
    "azure-event-grid-kubernetes": 125,
    "go-sarama-resent": 35,
    "go-confluent-old-types": 105,
    "knative-source-camel-case": 125,
    "dapr-json": 80,
    "dapr-sorted": 80,
    "dapr-text": 75,
    "": 210,
}


def _producers() -> Iterator[Shape]:
    bare = [
        ("Dapr, dense", DAPR),
        ("Dapr, an empty tracestate", {**DAPR, "tracestate": ""}),
        ("Debezium, a dozen extensions", DEBEZIUM),
    ]
    for name, members in bare:
        yield _read("producers", name, _producer_calls(name), Record(value=dense(members)))
    for case in json.loads(PRODUCERS.read_text("utf-8"))["cases"]:
        if case["lenient"]["verdict"] == "event":
            name = case["id"].removeprefix("real/")
            yield _read("producers", name, _producer_calls(name), _record(case["record"]))


def _producer_calls(name: str) -> int:
    return PRODUCER_CALLS.get(name, PRODUCER_CALLS[""])


def _record(notation: Any) -> Record:
    """Return a record in the notation of the vectors."""
    headers = [(name, _bytes(value)) for name, value in notation["headers"]]
    return Record(key=_bytes(notation["key"]), value=_bytes(notation["value"]), headers=headers)


def _bytes(notation: Any) -> bytes | None:
    if isinstance(notation, dict):
        return str(notation["text"]).encode()
    return None if notation is None else bytes.fromhex(notation)


# --- writing ---------------------------------------------------------------------------

MODES: Final = {"binary": to_binary, "structured": to_structured}
OLD_MODES: Final = {"binary": old_to_binary, "structured": old_to_structured}
TEXT: Final = {"datacontenttype": "text/plain"}

# The name, the bounds (made and written in binary mode and structured; only written), ours, and the
# SDK's form, if it differs.
WRITTEN: Final[list[tuple[str, tuple[int, int, int, int], Members, Members]]] = [
    ("all texts", (60, 60, 30, 30), {"time": TIME_TEXT}, {"time": TIME}),
    ("a datetime in UTC", (60, 60, 30, 30), {"time": TIME}, {}),
    ("a datetime with an offset", (60, 60, 30, 30), {"time": OFFSET}, {}),
    ("an int", (70, 65, 35, 30), {"time": TIME, "seq": 5}, {}),
    ("a bool", (70, 65, 30, 30), {"time": TIME, "flag": True}, {}),
    ("bytes", (75, 65, 35, 30), {"time": TIME, "blob": b"abc"}, {"blob": "YWJj"}),
    ("known extensions", (80, 70, 35, 30), {"time": TIME, "sampledrate": 5, "expirytime": TIME}, {}),
    ("a text in UTF-8", (65, 65, 30, 30), {"time": TIME, "subject": "s\u00e9nsor"}, {}),
    ("a dozen extensions", (70, 60, 40, 30), {"time": TIME, **OWN_EXTENSIONS}, {}),
    ("text data", (55, 60, 30, 35), {"time": TIME, **TEXT, "data": "hello " * 30}, {}),
    ("bytes as data", (50, 50, 30, 30), {"time": TIME, "datacontenttype": "image/png", "data": PICTURE}, {}),
    ("no data", (50, 40, 30, 20), {"time": TIME, "data": None}, {}),
    ("7 KB of data", (60, 60, 30, 30), {"time": TIME, "data": {"items": [ITEM] * 100}}, {}),
]


def _write(*, keys: bool) -> Iterator[Shape]:
    mapper = partition_key if keys else None
    for name, bounds, own, other in WRITTEN:
        arguments: Members = {**ATTRIBUTES, "data": DATA, **own}
        theirs = {**arguments, **other}
        data = theirs.pop("data")
        is_plain, event = name == "all texts", _their_event(theirs, data)
        for number, (mode, write) in enumerate(MODES.items()):
            yield Shape(
                "write",
                f"{mode}: {name}",
                bounds[number],
                _make(arguments, mode, mapper),
                lambda write=write, theirs=theirs, data=data: write(_their_event(theirs, data), JSON),
                is_plain=is_plain,
            )
            yield Shape(
                "write",
                f"{mode}, only written: {name}",
                bounds[2 + number],
                _encode(Event(**arguments), mode, mapper),
                lambda write=write, event=event: write(event, JSON),
                is_plain=is_plain,
            )


def _make(arguments: Members, mode: Any, mapper: Mapper) -> Work:
    return lambda: to_record(Event(**arguments), mode=mode, key_mapper=mapper)


def _encode(event: Any, mode: Any, mapper: Mapper) -> Work:
    return lambda: to_record(event, mode=mode, key_mapper=mapper)


def _their_event(attributes: Members, data: Any) -> CloudEvent:
    return CloudEvent({"specversion": "1.0", **attributes}, data)


# The name, the bounds (binary mode and structured; the same through `EventProducer.send`), and the event.
SDK_EVENTS: Final[list[tuple[str, tuple[int, int, int, int], CloudEvent | OldCloudEvent]]] = [
    ("all texts", (65, 65, 65, 65), _their_event({**ATTRIBUTES, "time": TIME}, DATA)),
    ("an offset", (65, 65, 70, 70), _their_event({**ATTRIBUTES, "time": OFFSET}, DATA)),
    ("an int", (75, 65, 75, 65), _their_event({**ATTRIBUTES, "time": TIME, "seq": 5}, DATA)),
    ("a bool", (75, 65, 75, 65), _their_event({**ATTRIBUTES, "time": TIME, "flag": True}, DATA)),
    ("text data", (60, 70, 65, 70), _their_event({**ATTRIBUTES, "time": TIME, **TEXT}, "hello " * 30)),
    ("no data", (55, 50, 60, 50), _their_event({**ATTRIBUTES, "time": TIME}, None)),
    ("7 KB of data", (70, 70, 70, 70), _their_event({**ATTRIBUTES, "time": TIME}, {"a": [ITEM] * 100})),
    ("version 1", (70, 70, 75, 75), OldCloudEvent({**ATTRIBUTES, "time": TIME_TEXT}, DATA)),
    ("version 1, no data", (60, 55, 65, 55), OldCloudEvent({**ATTRIBUTES, "time": TIME_TEXT}, None)),
]


class Client:
    """A Kafka client that sends nothing."""

    def produce(self, _topic: str, **_message: Any) -> None:
        """Take a message."""

    def poll(self, _timeout: float) -> int:
        """Return the number of delivery reports, which is 0."""
        return 0

    def flush(self, _timeout: float | None = None) -> int:
        """Return the number of messages in the queue, which is 0."""
        return 0


def _sdk(*, keys: bool) -> Iterator[Shape]:
    client, mapper = Client(), partition_key if keys else None
    for name, bounds, event in SDK_EVENTS:
        for number, mode in enumerate(MODES):
            theirs = _their_record(event, mode)
            yield Shape("sdk", f"{mode}: {name}", bounds[number], _encode(event, mode, mapper), theirs)
            yield Shape(
                "sdk",
                f"{mode}, sent: {name}",
                bounds[2 + number],
                _send(client, event, mode, mapper),
                _their_send(client, theirs),
            )


# The functions of the SDK under their own names, with their bounds. Version 1 checks nothing.
NAMES: Final[dict[str, list[tuple[str, int]]]] = {
    "version 2": [
        ("to_binary_event", 60),
        ("from_binary_event", 75),
        ("to_structured_event", 60),
        ("from_structured_event", 60),
    ],
    "version 1": [("to_binary", 60), ("from_binary", 40), ("to_structured", 40), ("from_structured", 30)],
}


def _names() -> Iterator[Shape]:
    """Yield the functions of `cloudevents_kafka.sdk` next to those of the SDK."""
    event = _their_event({**ATTRIBUTES, "time": TIME, "partitionkey": "c-4"}, DATA)
    old = OldCloudEvent({**ATTRIBUTES, "time": TIME_TEXT, "partitionkey": "c-4"}, DATA)
    for version, ours, theirs, written in (
        ("version 2", sdk, kafka, event),
        ("version 1", sdk_v1, kafka_v1, old),
    ):
        for name, bound in NAMES[version]:
            argument = (
                written if name.startswith("to_") else getattr(ours, name.replace("from", "to"))(written)
            )
            pair = [partial(getattr(module, name), argument) for module in (ours, theirs)]
            yield Shape("names", f"{version}, {name}", bound, *pair)


def _their_record(event: Any, mode: str) -> Callable[[], KafkaMessage]:
    if isinstance(event, OldCloudEvent):
        return lambda write=OLD_MODES[mode]: write(event)
    return lambda write=MODES[mode]: write(event, JSON)


def _send(client: Any, event: Any, mode: Any, mapper: Mapper) -> Work:
    producer = EventProducer(client, topic="orders", mode=mode, key_mapper=mapper)
    return lambda: producer.send(event)


def _their_send(client: Client, convert: Callable[[], KafkaMessage]) -> Work:
    def report(error: object, message: object) -> None:
        """Receive a delivery report."""

    def send() -> None:
        message = convert()
        client.produce(
            "orders", value=message.value, key=message.key, headers=message.headers, on_delivery=report
        )
        client.poll(0)

    return send


# --- Avro and Protobuf -----------------------------------------------------------------

FORMAT_CALLS: Final = {"Avro read": 80, "Avro written": 30, "Protobuf read": 60, "Protobuf written": 35}


def _formats() -> Iterator[Shape]:
    for name, ours, theirs in [*avro_pairs(), *protobuf_pairs()]:
        yield Shape("formats", name, FORMAT_CALLS[name], ours, theirs)


# --- what peers wrote ------------------------------------------------------------------

# The bounds for the median of the records of a peer in an encoding, and for the slowest of them.
PEER_CALLS: Final[dict[tuple[str, str], tuple[int, int]]] = {
    ("go", "binary"): (30, 45),
    ("go", "json"): (50, 95),
    ("go", "protobuf"): (65, 120),
    ("java", "binary"): (30, 45),
    ("java", "json"): (50, 80),
    ("java", "protobuf"): (70, 140),
    ("javascript", "binary"): (35, 50),
    ("javascript", "binary, leniently"): (155, 175),
    ("javascript", "json"): (55, 95),
    ("javascript", "json, leniently"): (130, 150),
    ("python1", "binary"): (30, 45),
    ("python1", "json, leniently"): (70, 190),
    ("python2", "binary"): (30, 50),
    ("python2", "json"): (55, 95),
    ("rust", "binary"): (30, 45),
    ("rust", "json"): (50, 90),
}
