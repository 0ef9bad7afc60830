"""Cases of every kind fail if the library does something else than they expect."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from conformance import Case, CaseFailed, Dataset, _raw_encoders
from conformance._case import require_equal
from conformance._dataset import KINDS, as_case

from tests.support.cases import each

DATASET = Dataset()
CASES = {case.id: case for _, case in DATASET.all_cases}
NOTATIONS = {case["id"]: case for name in DATASET.files for case in DATASET.file(name).cases if "id" in case}
BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
HEADERS = [[f"ce_{name}", {"text": value}] for name, value in BASE.items()]
AVRO, PROTO = (
    [["content-type", {"text": f"application/cloudevents+{name}"}]] for name in ("avro", "protobuf")
)
DATUM = {"avro": "ff" * len(_raw_encoders.avro(BASE))}
MESSAGE = {"protobuf": "ff" * len(_raw_encoders.protobuf(BASE) or b"")}
OTHER: dict[str, Any] = {"attributes": {**BASE, "id": "2"}, "data": None}
WRONG: dict[str, dict[str, Any]] = {
    "attribute": {"accepted": False},
    "construct": {"accepted": False, "faults": ["id"]},
    "decode": {"strict": {"verdict": "batch"}},
    "encode": {"refused": True},
    "equal": {"events": [OTHER, {"attributes": BASE, "data": None}], "equal": True},
    "forward": {"signed": False},
    "http": {"event": OTHER},
    "json-batch": {"accepted": False},
    "key": {"record_key": "ffff"},
    "media-type": {"is_json": False},
    "moment": {"over": True},
    "relation": {"holds": False},
    "relay": {"record": {"key": None, "value": None, "headers": []}},
    "round-trip": {"event": {"attributes": {"id": "1"}, "data": None}},
    "sequence": {"orders": ["gap"]},
    "sign": {"core": "00"},
    "size": {"too_large": True},
    "sniff": {"mode": "batch"},
    "transcode": {"result": {"key": None, "value": "ffff", "headers": []}},
    "verify": {"verified": None},
}


def changed(name: str, **members: Any) -> Case:
    """Return a case with other members."""
    return as_case(NOTATIONS[name] | members, file="changed.json")


@each("kind", KINDS)
def test_every_kind_can_fail(kind: str) -> None:
    """A case of any kind with a wrong expectation fails, and says what it found."""
    name = next(name for name in NOTATIONS if CASES[name].kind == kind and CASES[name].accepts)
    CASES[name].run()
    with pytest.raises(CaseFailed, match=r".{10}"):
        changed(name, **WRONG[kind]).run()


@each(
    ("name", "members"),
    [
        ("D-07/3", {"secret": "noon"}),
        ("S-04/1", {"referred": True}),
        ("S-04/3", {"referred": False}),
        ("X-37/1", {"heeds": {"dataclassification": ["internal"]}}),
        ("X-37/4", {"heeds": {}}),
        ("X-51/2", {"orders": ["first", "next", "next"]}),
    ],
)
def test_optional_members_can_fail(name: str, members: dict[str, Any]) -> None:
    """Secrets, labels, references and other attributes are checked in cases that have them."""
    CASES[name].run()
    with pytest.raises(CaseFailed):
        changed(name, **members).run()


BROKEN: dict[str, Any] = {"value": {"json": 1}, "key": None, "headers": []}


@each(
    ("base", "members"),
    [
        ({"kind": "attribute", "attribute": "x", "accepted": True}, {"value": "v", "typed": True}),
        ({"kind": "json-batch", "accepted": True}, {"batch": "["}),
        *[
            ({"kind": "encode", "event": {"attributes": BASE, "data": None}, "mode": mode}, members)
            for mode, members in [
                ("binary", {"record": BROKEN | {"headers": HEADERS}}),
                ("structured", {"record": BROKEN | {"headers": AVRO}, "format": "avro"}),
                ("structured", {"record": BROKEN | {"headers": AVRO, "value": DATUM}, "format": "avro"}),
                (
                    "structured",
                    {"record": BROKEN | {"headers": PROTO, "value": MESSAGE}, "format": "protobuf"},
                ),
            ]
        ],
    ],
)
def test_values_that_cannot_be_compared_fail(base: dict[str, Any], members: dict[str, Any]) -> None:
    """A case fails, with no other error, if the expected and the found value are of different kinds."""
    common = {"id": "Z-01/1", "clause": "Z-01", "source": "s", "about": "a"}
    case = as_case(common | base | members, file="x.json")
    with pytest.raises(CaseFailed):
        case.run()


@each(
    ("path", "wrong"),
    [
        (("strict", "attributes", "id"), "2"),
        (("strict", "data"), {"text": "{}"}),
        (("strict", "mode"), "structured"),
        (("lenient", "tolerated"), ["nothing"]),
    ],
)
def test_an_event_is_compared_whole(path: tuple[str, ...], wrong: Any) -> None:
    """Each attribute, the data, the mode and the tolerated problems of an event are compared."""
    members = copy.deepcopy(NOTATIONS["real/javascript-binary"])
    *outer, last = path
    inner: Any = members
    for name in outer:
        inner = inner[name]
    inner[last] = wrong
    with pytest.raises(CaseFailed):
        changed("real/javascript-binary", **members).run()


def test_a_long_value_is_cut_to_where_it_differs() -> None:
    """The message for two long values has the text around the first difference."""
    with pytest.raises(CaseFailed) as error:
        require_equal(b"a" * 3000 + b"one" + b"b" * 3000, b"a" * 3000 + b"two" + b"b" * 3000, "the data")
    expected, found = str(error.value).split(", not ")
    assert re.fullmatch("the data must be …a{10,}twob{10,}…", expected)
    assert re.fullmatch("…a{10,}oneb{10,}…", found)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        ("strict", "the verdict must be 'batch', not 'event': Event(id='1', source='"),
        ("lenient", "read leniently, the verdict must be 'batch', not 'event': Event(id='1', source='"),
    ],
)
def test_a_wrong_verdict_comes_first(reader: str, message: str) -> None:
    """The message begins with both verdicts; the event or error, which may be long, follows."""
    with pytest.raises(CaseFailed) as error:
        changed("real/javascript-binary", **{reader: {"verdict": "batch"}}).run()
    assert str(error.value).startswith(message)
