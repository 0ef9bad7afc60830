"""Recommendations: those that an event does not follow are reported, and no event is refused."""

from __future__ import annotations

import base64
import json
import time
from typing import Any, Final, Literal

import pytest
from hypothesis import given

from cloudevents_kafka import Decoded, Event, Record, decode, from_record, to_record
from cloudevents_kafka.extensions import unmet_recommendations
from tests.support import strategies as make
from tests.support.cases import each

MODES: Final[tuple[Literal["binary", "structured"], ...]] = ("binary", "structured")

OPC_UA = {
    "type": "ua-keyframe",
    "opcuastatus": 0,
    "subject": "s",
    "time": "2024-03-28T21:56:42Z",
    "sequence": "7",
    "traceparent": f"00-{'1' * 32}-{'2' * 16}-01",
    "recordedtime": "2024-03-28T21:56:43Z",
}

BAM = {"bamtxid": "1", "bampid": "order-process", "bamptxid": "payment_2", "bamptxsid": "v1.start"}


def event(**attributes: Any) -> Event:
    return Event(**{"id": "1", "source": "/", "type": "com.example.t", **attributes})


def envelope(material: Any = None, **changed: Any) -> bytes:
    """Return a DSSE envelope around material, with changed members."""
    digest = base64.b64encode(bytes(32)).decode()
    inner = json.dumps({"core": digest, "more": 1, **(material or {})}).encode()
    made = {
        "payload": base64.b64encode(inner).decode(),
        "payloadType": "https://cloudevents.io/verifiability/dsse/v0.1",
        "signatures": [{"keyid": "k", "sig": digest}],
        "more": 1,
    }
    return json.dumps({**made, **changed}).encode()


TOKEN = "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
EXT = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    ("attributes", "reported"),
    [
        ({}, []),
        ({"type": "t"}, ["type R-17"]),
        ({"9x": "v"}, ["9x N-02"]),
        ({"x" * 21: "v"}, [f"{'x' * 21} N-06"]),
        ({"x" * 20: "v", "opcuametadatamajorversion": 1}, []),
        ({"traceparent": "p"}, ["traceparent X-02"]),
        ({"dataref": ""}, ["dataref X-04"]),
        ({"expirytime": "2024-01-01T00:00:00Z"}, []),
        (
            {"expirytime": "2024-01-01T00:00:00Z", "time": "2024-01-01T00:00:00.0000001Z"},
            ["expirytime X-16"],
        ),
        ({"expirytime": "2024-01-01T00:00:00Z", "time": "2024-01-01T01:00:00+01:00"}, []),
        ({"recordedtime": "2023-01-01T00:00:00Z", "time": "2024-01-01T00:00:00Z"}, ["recordedtime X-20"]),
        ({"severitytext": "Info", "severitynumber": 9}, ["severitytext X-23"]),
        ({"severitytext": "ERROR", "severitynumber": 17}, []),
        ({"severitytext": "INFO3", "severitynumber": 11}, []),
        ({"severitytext": "NOTICE", "severitynumber": 9}, ["severitytext X-50"]),
        ({"severitytext": "Notice", "severitynumber": 9}, ["severitytext X-23", "severitytext X-50"]),
        ({"authtype": "robot"}, ["authtype X-30"]),
        ({"authtype": "user", "authclaims": "a=b"}, ["authclaims X-10"]),
        ({"authtype": "user", "authclaims": '{"sub": 1}'}, []),
        ({"authtype": "user", "authclaims": f'"{TOKEN}"'}, ["authclaims X-31"]),
        ({"authtype": "user", "authclaims": f'"Bearer {TOKEN}"'}, ["authclaims X-31"]),
        ({"authtype": "user", "authclaims": '"-----BEGIN PRIVATE KEY-----"'}, ["authclaims X-31"]),
        ({"authtype": "user", "authclaims": '"eyJhIjoxfQ.of.none"'}, []),
        ({"recordedtime": "9999-01-01T00:00:00Z"}, ["recordedtime X-54"]),
        ({"recordedtime": "2024-01-01T00:00:00Z"}, []),
        (OPC_UA, ["type R-17"]),
        ({**OPC_UA, "type": "ua-metadata", "subject": None}, ["type R-17", "subject X-40"]),
        (
            {"type": "ua-metadata"},  # as the document's example, it has no attribute of its own
            ["type R-17", "subject X-40", "time X-40"],
        ),
        (
            {**OPC_UA, "recordedtime": None, "traceparent": None},
            ["type R-17", "traceparent X-40", "recordedtime X-40"],
        ),
        (
            {**OPC_UA, "datacontenttype": "application/json; charset=utf-8", "data": {"On": True}},
            ["type R-17"],
        ),
        ({**OPC_UA, "datacontenttype": "application/json+gzip", "data": b"\x1f\x8b"}, ["type R-17"]),
        ({**OPC_UA, "data": {"On": True}}, ["type R-17", "datacontenttype X-64"]),
        ({**OPC_UA, "datacontenttype": "text/json", "data": {}}, ["type R-17", "datacontenttype X-64"]),
        ({**OPC_UA, "datacontenttype": "application/avro", "data": b"\0"}, ["type R-17", "dataschema X-64"]),
        (
            {
                **OPC_UA,
                "opcuastatus": None,
                "datacontenttype": "application/avro",
                "dataschema": "http://example.com/s",
                "data": b"\0",
            },
            ["type R-17"],
        ),
        ({**OPC_UA, "type": "ua-event"}, ["type R-17", "subject X-64"]),
        ({**OPC_UA, "type": "ua-event", "subject": "/5"}, ["type R-17", "subject X-64"]),
        ({**OPC_UA, "type": "ua-event", "subject": "s/5"}, ["type R-17"]),
        *[
            ({**OPC_UA, "datacontenttype": "application/json", "data": data}, ["type R-17", *reported])
            for data, reported in [
                ([{"a": 1}], ["data X-64"]),
                ({"MessageId": "1", "Messages": [{"Payload": {}}]}, ["data X-64"]),
                ({"DataSetWriterId": 1, "Payload": {"a": 1}}, ["data X-64"]),
                ({"Messages": 5, "Payload": 1}, []),  # a dataset may have any field names
                (b"{", []),  # malformed JSON is reported when it is read
                (b"[" * 100_000, []),
            ]
        ],
        ({"deprecated": True, "deprecationfrom": "2024-10-11T00:00:00Z"}, ["deprecated X-70"]),
        ({"deprecated": True, "deprecationmigration": "https://example.com/next"}, []),
        (
            {
                "deprecated": True,
                "deprecationfrom": "9999-10-11T00:00:00Z",
                "deprecationmigration": "https://example.com/next",
            },
            ["deprecationfrom X-27"],
        ),
        (BAM, []),
        ({**BAM, "bampid": "order process", "bamptxsstatus": "ok!"}, ["bampid X-33", "bamptxsstatus X-33"]),
        ({"dataclassification": "internal"}, []),
        ({"dataclassification": "secret"}, ["dataclassification X-35"]),
        ({"dataclassification": "secret", "dataregulation": "GDPR"}, []),
        ({"dssematerial": envelope()}, []),
        ({"dssematerial": envelope({"ext": EXT, "signedextattrs": ["a", "b"]})}, []),
        ({"dssematerial": envelope({"ext": EXT, "signedextattrs": ["a", "b"]}), "a": ""}, ["a X-60"]),
        ({"dssematerial": envelope({"ext": EXT, "signedextattrs": ["a"]}), "a": "v", "b": ""}, []),
        ({"dssematerial": envelope(), "authtype": "user"}, ["authtype X-62"]),
        ({"dssematerial": envelope({"ext": EXT, "signedextattrs": ["authtype"]}), "authtype": "user"}, []),
        (
            {"dssematerial": envelope(), "dataclassification": "internal", "partitionkey": "p"},
            ["dataclassification X-62"],
        ),
        *[
            ({"dssematerial": bad}, ["dssematerial X-43"])
            for bad in (
                b"",
                b"\xff",
                b"[" * 5000,
                envelope(payload="{"),
                envelope(payloadType="https://example.com"),
                envelope(signatures=[]),
                envelope(signatures=[{"sig": ""}]),
                envelope({"core": "AAAA"}),
                envelope({"ext": EXT}),
                envelope({"signedextattrs": []}),
                envelope({"ext": EXT, "signedextattrs": ["a", "a"]}),
                envelope({"ext": EXT, "signedextattrs": ["subject"]}),
                envelope({"ext": EXT, "signedextattrs": ["dssematerial"]}),
            )
        ],
    ],
    ids=lambda value: str(value)[:60],
)
def test_recommendations(attributes: dict[str, Any], reported: list[str]) -> None:
    """Each recommendation that an event does not follow is reported with its attribute and clause."""
    assert [
        f"{problem.attribute} {problem.clause}" for problem in unmet_recommendations(event(**attributes))
    ] == reported


@pytest.mark.parametrize("claims", [TOKEN, f'"{TOKEN}"'], ids=["alone", "in JSON"])
def test_possible_tokens_are_not_quoted(claims: str) -> None:
    """A problem may be logged, so it does not quote what may be a token."""
    (problem,) = unmet_recommendations(event(authtype="user", authclaims=claims))
    assert "eyJ" not in str(problem)


@each("text", ["eyJ" * 100_000, "-eyJ" * 100_000, ".eyJaaaaaaaa" * 50_000])
def test_claims_are_searched_in_linear_time(text: str) -> None:
    """Claims are untrusted input, and are searched in linear time."""
    started = time.process_time()
    unmet_recommendations(event(authtype="user", authclaims=text))
    assert time.process_time() - started < 2


def test_opc_ua_should_be_in_binary_mode() -> None:
    """An OPC UA event from a structured record has a problem, one from binary mode has none."""
    made = event(**OPC_UA)
    reported = {
        mode: [
            str(p.attribute)
            for p in unmet_recommendations(from_record(to_record(made, mode=mode)))
            if p.clause == "X-64"
        ]
        for mode in MODES
    }
    assert reported == {"binary": [], "structured": ["None"]}


@given(make.hostile_records())
def test_any_event_can_be_checked(record: Record) -> None:
    """Any event can be checked, also one from lenient reading, and its problems can be printed."""
    item = decode(record, lenient=True)
    if isinstance(item, Decoded):
        assert all(map(str, unmet_recommendations(item.event)))
