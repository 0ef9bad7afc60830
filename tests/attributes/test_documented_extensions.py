"""The documented extensions: their types and rules."""

from __future__ import annotations

from typing import Any

import pytest

from cloudevents_kafka import Decoded, Event, InvalidEvent, Record, decode, from_record, to_record
from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.extension_types import current
from cloudevents_kafka.primitives.clauses import sections
from tests.support.cases import each
from tests.support.ids import stable
from tests.support.strategies import GOOD

BAM = {"bamtxid": "1", "bampid": "orders", "bamptxid": "payment", "bamptxsid": "start"}


def event(**extensions: Any) -> Event:
    return Event(id="1", source="/", type="t", **extensions)


@each(
    ("extensions", "clause", "faults"),
    [
        ({"tracestate": "a=b"}, "X-02", {"traceparent"}),
        ({"traceparent": "", "tracestate": ""}, "X-02", {"traceparent"}),
        ({"sequence": ""}, "X-03", {"sequence"}),
        ({"severitytext": "INFO"}, "X-08", {"severitynumber"}),
        ({"severitytext": "", "severitynumber": 9}, "X-08", {"severitytext"}),
        ({"deprecationmigration": "https://a.example/new"}, "X-09", {"deprecated"}),
        (
            {
                "deprecated": True,
                "deprecationfrom": "2025-01-01T00:00:00.0000002Z",
                "deprecationsunset": "2025-01-01T01:00:00.0000001+01:00",
            },
            "X-09",
            {"deprecationsunset"},
        ),
        (
            {
                "deprecated": True,
                "deprecationfrom": "2016-12-31T23:59:60Z",
                "deprecationsunset": "2016-12-31T23:59:59.9999999Z",
            },
            "X-09",
            {"deprecationsunset"},
        ),
        ({"authid": "7", "authclaims": "{}"}, "X-10", {"authtype"}),
        ({"correlationid": "", "causationid": ""}, "X-11", {"correlationid", "causationid"}),
        ({"dataregulation": "GDPR"}, "X-12", {"dataclassification"}),
        ({"dataclassification": "public", "datacategory": ""}, "X-12", {"datacategory"}),
        *[
            ({"dataclassification": "x", "dataregulation": bad}, "X-12", {"dataregulation"})
            for bad in ("", " ", ",", "PCI DSS", "GDPR, PCI DSS")
        ],
        *[({name: BAM[name]}, "X-13", BAM.keys() - {name}) for name in BAM],
        ({**BAM, "bamptxsstatus": ""}, "X-13", {"bamptxsstatus"}),
        ({"bamptxcompleted": False}, "X-13", BAM.keys()),
        ({"opcuametadatamajorversion": 1, "dataschema": "urn:s"}, "X-14", {"opcuametadatamajorversion"}),
        ({"opcuametadataminorversion": 0, "dataschema": "urn:s"}, "X-14", {"opcuametadataminorversion"}),
    ],
    ids=stable,
)
def test_broken_rules_are_reported(extensions: dict[str, Any], clause: str, faults: set[str]) -> None:
    """Every wrong or missing attribute is reported with the clause of its document."""
    with pytest.raises(InvalidEvent) as caught:
        event(**extensions)
    assert {(p.attribute, p.clause) for p in caught.value.problems} == {(name, clause) for name in faults}
    assert sections()[clause] in str(caught.value)


@each(
    "extensions",
    [
        {"traceparent": "none of W3C's", "tracestate": ""},
        {"sequence": "2"},
        {"dataref": ""},
        {"expirytime": "2000-01-01T00:00:00Z", "time": "2001-01-01T00:00:00Z"},
        {"recordedtime": "2000-01-01T00:00:00Z", "time": "2001-01-01T00:00:00Z"},
        {"severitynumber": 0},
        {"severitytext": "info", "severitynumber": 100},
        {
            "deprecated": True,
            "deprecationfrom": "2025-01-01T00:00:00Z",
            "deprecationsunset": "2025-01-01T01:00:00+01:00",
        },
        {"deprecated": True, "deprecationsunset": "1999-01-01T00:00:00Z"},
        {"authtype": "robot", "authid": "", "authclaims": "no JSON"},
        {"causationid": "7"},
        {"dataclassification": "", "dataregulation": " GDPR , ISO-27001,HIPAA"},
        {**BAM, "bamptxsstatus": "waiting", "bamptxcompleted": True},
        {"opcuastatus": 0, "dataschema": "urn:s"},
        {"opcuametadatamajorversion": 672338910, "opcuametadataminorversion": 0},
        {"dssematerial": b"no envelope"},
    ],
    ids=stable,
)
@each("mode", ["binary", "structured"])
def test_values_that_documents_allow(extensions: dict[str, Any], mode: Any) -> None:
    """Values that a document only discourages or does not mention are valid, and both modes preserve them."""
    written = event(**extensions)
    assert from_record(to_record(written, mode=mode)) == written


@each(
    ("headers", "problems"),
    [
        ({"tracestate": "a=b"}, {"traceparent"}),
        ({"bampid": "p"}, BAM.keys() - {"bampid"}),
        ({"severitynumber": "-1"}, {"severitynumber"}),
        (
            {
                "deprecated": "true",
                "deprecationfrom": "2026-01-01T00:00:00Z",
                "deprecationsunset": "2025-01-01T00:00:00Z",
            },
            {"deprecationsunset"},
        ),
        ({"deprecated": "true", "deprecationfrom": "soon", "deprecationsunset": "now"}, None),
    ],
    ids=stable,
)
def test_lenient_reading_tolerates_invalid_extensions(
    headers: dict[str, str], problems: set[str] | None
) -> None:
    """Lenient reading keeps the attributes, typed if possible, and reports their problems."""
    texts = {**GOOD, **headers}
    result = decode(Record(headers=[(f"ce_{n}", v.encode()) for n, v in texts.items()]), lenient=True)
    assert isinstance(result, Decoded)
    assert {p.attribute for p in result.tolerated} == (problems or {"deprecationfrom", "deprecationsunset"})
    assert {name: result.event.text(name) for name in headers} == headers


def test_every_clause_has_its_attributes() -> None:
    """All fifteen documents have attributes, and the constrained ones are not accepted fast."""
    assert {extension.clause for extension in DOCUMENTED.values()} == {f"X-{n:02}" for n in range(1, 16)}
    text_names = {
        "partitionkey",
        "traceparent",
        "sequence",
        "authtype",
        "correlationid",
        "causationid",
        "dataclassification",
    }
    assert DOCUMENTED.keys() - current.table.constrained == text_names
