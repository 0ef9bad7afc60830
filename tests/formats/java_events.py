"""Events of the Java SDK's format tests, by name; each format's test has the bytes that the SDK writes."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from cloudevents_kafka import Event

_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "minimalWithTime": {"time": "2018-04-05T17:31:00Z"},
    "allCore": {
        "datacontenttype": "text/plain",
        "dataschema": "https://cloudevents.io/dataschema",
        "subject": "tests",
        "time": "2018-04-05T17:31:00Z",
    },
    "simpleTextData": {"datacontenttype": "text/plain", "data": "Simple text"},
    "allExtensionTypes": {
        "extinteger": 10,
        "extboolean": True,
        "extstring": "text",
        "extbinary": b"Ma",
        "exttimestamp": "2023-03-31T15:12:00Z",
    },
    "uri": {"exturi": "https://cloudevents.io", "exturiref": "//authority/path"},
    "json": {"datacontenttype": "application/json", "data": '{"a": [1, "é"]}'.encode()},
    "jsoncharset": {"datacontenttype": "application/json; charset=utf-8", "data": b"{}"},
    "xml": {"datacontenttype": "application/xml", "data": "<stuff></stuff>"},
    "binary": {"datacontenttype": "application/octet-stream", "data": b"\x01\x02"},
    "noct": {"data": b"hi"},
    "emptytext": {"datacontenttype": "text/plain", "data": ""},
    "micros": {"time": "2018-04-05T17:31:00.123456Z"},
    "nanos": {"time": "2018-04-05T17:31:00.123456789Z"},
    "old": {"time": "1969-12-31T23:59:59.5Z"},
    "longext": {"n": "1970-01-01T00:00:00.0042Z"},
    "anynoct": {"data": Timestamp(seconds=5)},
}


def java_event(name: str, id: str | None = None) -> Event:
    return Event(
        id=id or name, source="https://cloudevents.io", type="io.cloudevents.test", **_ATTRIBUTES[name]
    )
