"""The shapes of events: ways to read and to write them, as many producers and users do.

`shapes` times each next to another way, mostly the cloudevents SDK, and
`tests/test_function_calls.py` counts its function calls, so that a slow way of some shape fails a
test. The number next to a shape is its bound: 10 % above the most that Python 3.11 to 3.13 need.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Final

from _sdk import JSON, message_of
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka, to_binary, to_structured
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1.http import CloudEvent as OldCloudEvent
from cloudevents.v1.kafka import to_binary as old_to_binary
from cloudevents.v1.kafka import to_structured as old_to_structured
from converters import ATTRIBUTES, DATA, TIME, TIME_TEXT
from formats import avro_pairs, protobuf_pairs

from cloudevents_kafka import Event, EventProducer, Record, decode, from_record, partition_key, to_record

Work = Callable[[], object]

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
    "lenient": Group("read leniently what breaks no rule", "strict", 0.9, None),
    "producers": Group("read leniently what known producers send", "SDK", 1.5, 2),
    "write": Group("make and write an event", "SDK", 1.7, 2.5),
    "sdk": Group("write an event of the SDK", "SDK", 1.1, 1.5),
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


def shapes() -> list[Shape]:
    """Return all shapes."""
    return [*_json(), *_binary(), *_lenient(), *_producers(), *_write(), *_sdk(), *_formats()]


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
    ("dense, data last", 39, dense(envelope())),
    ("blanks, as Python writes it", 39, spaced(envelope())),
    ("indented", 39, json.dumps(envelope(), indent=2).encode()),
    ("blanks of all kinds", 49, b"\n " + BLANKS + b"\r\n"),
    ("data first", 49, spaced(DATA_FIRST)),
    ("dense, data first", 49, dense(DATA_FIRST)),
    ("dense, data in the middle", 49, dense(DATA_IN_THE_MIDDLE)),
    ("an escape in an attribute", 54, spaced(envelope(subject='a "b" \u00e9'))),
    ("escapes of HTML, as Go writes them", 55, dense(envelope()).replace(b"/lines/4", b"/4?a=1\\u0026b=2")),
    ("an attribute in UTF-8", 54, dense(envelope(subject="s\u00e9nsor"))),
    ("a no-break space in an attribute", 54, dense(envelope(subject="sensor\xa01"))),
    ("data in UTF-8", 60, dense(envelope({"note": "s\u00e9nsor \u65e5\u672c"}))),
    ("an Integer", 51, spaced(envelope(seq=5))),
    ("a Boolean", 51, dense(envelope(flag=True))),
    ("Binary as base64", 55, dense(envelope(dssematerial="TWFuVFdGdQ=="))),
    ("sampledrate", 61, spaced(envelope(sampledrate=5))),
    ("expirytime and recordedtime", 60, dense(envelope(expirytime=TIME_TEXT, recordedtime=TIME_TEXT))),
    ("severity", 74, dense(envelope(severitynumber=9, severitytext="INFO"))),
    ("tracestate", 54, dense(envelope(tracestate="congo=t61rcWkgMzE"))),
    ("a null member", 49, spaced({**envelope(), "dataschema": None})),
    ("data is null", 39, dense({**envelope(), "data": None})),
    ("a dozen extensions", 39, dense(envelope(**OWN_EXTENSIONS))),
    ("no data", 38, spaced(envelope(None))),
    ("four attributes", 33, dense({"id": "1", "source": "/s", "specversion": "1.0", "type": "t"})),
    ("text data", 60, spaced(envelope("hello " * 30, datacontenttype="text/plain"))),
    ("text data with escapes", 60, spaced(envelope('<a b="c"/>\n' * 9, datacontenttype="application/xml"))),
    ("JSON text as data", 39, dense(envelope("hello"))),
    ("a number as data", 39, spaced(envelope(17.5))),
    (
        "data_base64",
        53,
        dense(
            {
                **HEAD,
                "datacontenttype": "image/png",
                "data_base64": base64.b64encode(PICTURE).decode(),
            }
        ),
    ),
    ("data with members of the same names", 39, spaced(envelope({"data": {"data": 1, "id": "2"}}))),
    ("time with an offset", 39, spaced(envelope(time="2018-04-05T17:31:00+02:00"))),
    ("time with nanoseconds", 39, dense(envelope(time="2018-04-05T17:31:00.123456789Z"))),
    ("a content type with a charset", 39, dense(envelope(datacontenttype="application/json; charset=utf-8"))),
    ("no content type", 37, spaced(envelope(datacontenttype=None))),
    ("a dataschema", 40, dense(envelope(dataschema="https://registry.example/schemas/17#v2"))),
    ("7 KB of data", 39, spaced(envelope([ITEM] * 100))),
    ("100 KB of data", 39, dense(envelope([ITEM] * 1400))),
    ("Dapr, with headers", 49, spaced(DAPR)),
    ("Debezium, with headers", 55, dense(DEBEZIUM)),
    ("Knative", 39, dense(KNATIVE)),
    ("Google Cloud Audit Logs", 52, spaced(GOOGLE)),
    ("Azure Event Grid", 37, dense(AZURE)),
]


def in_json(value: bytes, content_type: bytes = JSON_TYPE) -> Record:
    return Record(key=KEY, value=value, headers=[("content-type", content_type)])


def _json() -> Iterator[Shape]:
    for name, calls, value in JSON_SHAPES:
        yield _read("json", name, calls, in_json(value), is_plain=name == "dense, data last")
    parameters = in_json(dense(envelope()), b"application/cloudevents+json; charset=UTF-8")
    yield _read("json", "the header has a charset", 39, parameters)
    without_key = Record(value=dense(envelope()), headers=[("content-type", JSON_TYPE)])
    yield _read("json", "dense, a record without a key", 39, without_key, is_plain=True)


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
    ("plain", 33, PLAIN, SERIALIZED),
    ("four attributes", 23, ce({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}), b"x"),
    ("sampledrate", 64, {**PLAIN, "ce_sampledrate": b"5"}, SERIALIZED),
    ("severity", 86, {**PLAIN, "ce_severitynumber": b"9", "ce_severitytext": b"INFO"}, SERIALIZED),
    ("expirytime", 65, {**PLAIN, "ce_expirytime": TIME_TEXT.encode()}, SERIALIZED),
    ("deprecated", 62, {**PLAIN, "ce_deprecated": b"true"}, SERIALIZED),
    ("Binary as base64", 70, {**PLAIN, "ce_dssematerial": b"TWFuVFdGdQ=="}, SERIALIZED),
    ("tracestate", 69, {**PLAIN, "ce_tracestate": b"congo=t61rcWkgMzE"}, SERIALIZED),
    ("a null header", 45, {**PLAIN, "ce_x": None}, SERIALIZED),
    ("nulls for absent attributes", 40, {**PLAIN, **ABSENT}, SERIALIZED),
    ("ce_datacontenttype is a copy", 54, {**PLAIN, "ce_datacontenttype": b"application/json"}, SERIALIZED),
    (
        "JavaScript: a copy and nulls",
        45,
        {**PLAIN, **ABSENT, "ce_datacontenttype": b"application/json"},
        SERIALIZED,
    ),
    ("foreign headers", 33, {**PLAIN, **FOREIGN}, SERIALIZED),
    ("twenty foreign headers", 33, {**PLAIN, **{f"x-{n}": b"v" for n in range(20)}}, SERIALIZED),
    ("a foreign header of any bytes", 33, {**PLAIN, "trace": b"\xff\xfe"}, SERIALIZED),
    ("an attribute in UTF-8", 32, {**PLAIN, "ce_subject": "s\u00e9nsor".encode()}, SERIALIZED),
    ("a no-break space", 33, {**PLAIN, "ce_subject": "sensor\xa01".encode()}, SERIALIZED),
    ("quotation marks", 32, {**PLAIN, "ce_subject": b'a "b" \\c'}, SERIALIZED),
    ("a dozen extensions", 47, {**PLAIN, **ce(OWN_EXTENSIONS)}, SERIALIZED),
    ("time with an offset", 33, {**PLAIN, "ce_time": b"2018-04-05T17:31:00+02:00"}, SERIALIZED),
    ("a dataschema", 36, {**PLAIN, "ce_dataschema": b"https://registry.example/schemas/17"}, SERIALIZED),
    ("no data", 33, PLAIN, None),
    ("text data", 33, {**PLAIN, "content-type": b"text/plain; charset=utf-8"}, b"hello " * 30),
    ("bytes", 33, {**PLAIN, "content-type": b"image/png"}, PICTURE),
    ("100 KB of data", 33, PLAIN, dense([ITEM] * 1400)),  # type: ignore[arg-type]
    ("Knative", 33, ce({name: text for name, text in KNATIVE.items() if name != "data"}), b"{}"),
    ("Google Cloud Audit Logs", 71, ce({name: t for name, t in GOOGLE.items() if name != "data"}), b"{}"),
]


def _binary() -> Iterator[Shape]:
    for name, calls, headers, value in BINARY_SHAPES:
        record = Record(key=KEY, value=value, headers=list(headers.items()))
        yield _read("binary", name, calls, record, is_plain=name == "plain")


# --- lenient reading -------------------------------------------------------------------

VALID: Final[list[tuple[str, int, Record]]] = [
    ("JSON, dense", 42, in_json(dense(envelope()))),
    ("JSON, blanks", 42, in_json(spaced(envelope()))),
    ("JSON, text data", 63, in_json(spaced(envelope("hello", datacontenttype="text/plain")))),
    ("JSON, Dapr", 52, in_json(spaced(DAPR))),
    ("JSON, Debezium", 59, in_json(dense(DEBEZIUM))),
    ("binary, plain", 37, Record(value=SERIALIZED, headers=list(PLAIN.items()))),
    ("binary, sampledrate", 67, Record(headers=[*PLAIN.items(), ("ce_sampledrate", b"5")])),
    ("binary, a null header", 49, Record(headers=[*PLAIN.items(), ("ce_x", None)])),
    ("binary, foreign headers", 37, Record(headers=[*PLAIN.items(), *FOREIGN.items()])),
    (
        "binary, JavaScript",
        54,
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
    "Dapr, dense": 48,
    "Dapr, an empty tracestate": 181,
    "Debezium, a dozen extensions": 54,
    "javascript-binary": 49,
    "csharp-structured": 44,
    "csharp-binary-no-data": 27,
    "smallrye-binary": 47,
    "spring-binary": 403,
    "python-v1-structured": 212,
    "go-binary": 33,
    "go-confluent-old": 258,
    "knative-lifted": 31,
    "confluent-schema-in-header": 30,
    "confluent-prefix": 30,
    "opentelemetry-headers": 28,
    "debezium-json": 177,
    "debezium-transaction": 196,
    "debezium-avro-data": 65,
    "confluent-audit-log": 381,
    "spring-http-prefix": 283,
    "spring-amqp-prefix": 258,
    "spring-quoted-source": 444,
    "smallrye-structured": 40,
    "smallrye-propagated": 212,
    "knative-lifted-empty-key": 730,
    "csharp-partition-key": 32,
    "csharp-structured-partition-key": 44,
    "javascript-structured": 50,
    "javascript-binary-no-data": 38,
    "python-v1-structured-no-type": 185,
    "python-v1-structured-xml": 217,
    "python-v1-structured-no-header": 43,
    "python-v1-binary-null": 33,
    "python-v1-binary-text": 30,
    "python-v2-binary-types": 687,
    "python-v2-binary-no-data": 30,
    "azure-event-grid": 300,
    "azure-event-grid-kubernetes": 466,
    "go-sarama-resent": 37,
    "go-confluent-old-types": 352,
    "knative-source-camel-case": 470,
    "": 730,
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
    ("all texts", (77, 74, 33, 30), {"time": TIME_TEXT}, {"time": TIME}),
    ("a datetime in UTC", (85, 82, 33, 30), {"time": TIME}, {}),
    ("a datetime with an offset", (86, 83, 33, 30), {"time": OFFSET}, {}),
    ("an int", (118, 97, 51, 30), {"time": TIME, "seq": 5}, {}),
    ("a bool", (117, 97, 50, 30), {"time": TIME, "flag": True}, {}),
    ("bytes", (121, 97, 54, 30), {"time": TIME, "blob": b"abc"}, {"blob": "YWJj"}),
    ("known extensions", (144, 123, 52, 30), {"time": TIME, "sampledrate": 5, "expirytime": TIME}, {}),
    ("a text in UTF-8", (84, 81, 33, 30), {"time": TIME, "subject": "s\u00e9nsor"}, {}),
    ("a dozen extensions", (98, 82, 47, 30), {"time": TIME, **OWN_EXTENSIONS}, {}),
    ("text data", (81, 86, 33, 39), {"time": TIME, **TEXT, "data": "hello " * 30}, {}),
    ("bytes as data", (71, 71, 33, 33), {"time": TIME, "datacontenttype": "image/png", "data": PICTURE}, {}),
    ("no data", (70, 60, 33, 23), {"time": TIME, "data": None}, {}),
    ("7 KB of data", (88, 85, 33, 30), {"time": TIME, "data": {"items": [ITEM] * 100}}, {}),
]


def _write() -> Iterator[Shape]:
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
                _make(arguments, mode),
                lambda write=write, theirs=theirs, data=data: write(_their_event(theirs, data), JSON),
                is_plain=is_plain,
            )
            yield Shape(
                "write",
                f"{mode}, only written: {name}",
                bounds[2 + number],
                _encode(Event(**arguments), mode),
                lambda write=write, event=event: write(event, JSON),
                is_plain=is_plain,
            )


def _make(arguments: Members, mode: Any) -> Work:
    return lambda: to_record(Event(**arguments), mode=mode, key_mapper=partition_key)


def _encode(event: Any, mode: Any) -> Work:
    return lambda: to_record(event, mode=mode, key_mapper=partition_key)


def _their_event(attributes: Members, data: Any) -> CloudEvent:
    return CloudEvent({"specversion": "1.0", **attributes}, data)


# The name, the bounds (binary mode and structured; the same through `EventProducer.send`), and the event.
SDK_EVENTS: Final[list[tuple[str, tuple[int, int, int, int], CloudEvent | OldCloudEvent]]] = [
    ("all texts", (98, 95, 102, 98), _their_event({**ATTRIBUTES, "time": TIME}, DATA)),
    ("an offset", (99, 96, 103, 99), _their_event({**ATTRIBUTES, "time": OFFSET}, DATA)),
    ("an int", (131, 110, 135, 114), _their_event({**ATTRIBUTES, "time": TIME, "seq": 5}, DATA)),
    ("a bool", (130, 110, 133, 114), _their_event({**ATTRIBUTES, "time": TIME, "flag": True}, DATA)),
    ("text data", (94, 99, 97, 103), _their_event({**ATTRIBUTES, "time": TIME, **TEXT}, "hello " * 30)),
    ("no data", (83, 73, 86, 76), _their_event({**ATTRIBUTES, "time": TIME}, None)),
    ("7 KB of data", (102, 98, 105, 102), _their_event({**ATTRIBUTES, "time": TIME}, {"a": [ITEM] * 100})),
    ("version 1", (92, 88, 95, 92), OldCloudEvent({**ATTRIBUTES, "time": TIME_TEXT}, DATA)),
    ("version 1, no data", (76, 66, 80, 70), OldCloudEvent({**ATTRIBUTES, "time": TIME_TEXT}, None)),
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


def _sdk() -> Iterator[Shape]:
    client: Any = Client()
    for name, bounds, event in SDK_EVENTS:
        for number, mode in enumerate(MODES):
            theirs = _their_record(event, mode)
            yield Shape("sdk", f"{mode}: {name}", bounds[number], _encode(event, mode), theirs)
            yield Shape(
                "sdk",
                f"{mode}, sent: {name}",
                bounds[2 + number],
                _send(client, event, mode),
                _their_send(client, theirs),
            )


def _their_record(event: Any, mode: str) -> Callable[[], KafkaMessage]:
    if isinstance(event, OldCloudEvent):
        return lambda write=OLD_MODES[mode]: write(event)
    return lambda write=MODES[mode]: write(event, JSON)


def _send(client: Any, event: Any, mode: Any) -> Work:
    producer = EventProducer(client, topic="orders", mode=mode, key_mapper=partition_key)
    return lambda: producer.send(event)


def _their_send(client: Any, convert: Callable[[], KafkaMessage]) -> Work:
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

FORMAT_CALLS: Final = {"Avro read": 138, "Avro written": 31, "Protobuf read": 64, "Protobuf written": 50}


def _formats() -> Iterator[Shape]:
    for name, ours, theirs in [*avro_pairs(), *protobuf_pairs()]:
        yield Shape("formats", name, FORMAT_CALLS[name], ours, theirs)


# --- what peers wrote ------------------------------------------------------------------

# The bounds for the median of the records of a peer in an encoding, and for the slowest of them.
PEER_CALLS: Final[dict[tuple[str, str], tuple[int, int]]] = {
    ("go", "binary"): (31, 67),
    ("go", "json"): (55, 102),
    ("go", "protobuf"): (67, 138),
    ("java", "binary"): (31, 67),
    ("java", "json"): (55, 97),
    ("java", "protobuf"): (78, 155),
    ("javascript", "binary"): (50, 65),
    ("javascript", "json"): (55, 97),
    ("javascript", "json, leniently"): (360, 464),
    ("python1", "binary"): (31, 45),
    ("python1", "json, leniently"): (246, 313),
    ("python2", "binary"): (31, 72),
    ("python2", "json"): (55, 105),
    ("rust", "binary"): (31, 67),
    ("rust", "json"): (55, 96),
}
