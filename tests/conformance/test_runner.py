"""The runner: it notices what does not hold, and its report is of today."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.conformance import flat, kinds, report, wires
from cloudevents_kafka.conformance.judging import Unmet
from cloudevents_kafka.conformance.library import DataMissing, Library
from cloudevents_kafka.conformance.schema import Schema
from cloudevents_kafka.conformance.shown import Failure, run_tests, show_all

LIBRARY = Library()
ROOT = Path(__file__).parents[2]
BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
HEADERS = [[f"ce_{name}", {"text": value}] for name, value in BASE.items()]
AVRO, PROTO = (
    [["content-type", {"text": f"application/cloudevents+{name}"}]] for name in ("avro", "protobuf")
)
DATUM = {"avro": "ff" * len(wires.avro(BASE))}
MESSAGE = {"protobuf": "ff" * len(wires.protobuf(BASE) or b"")}
OTHER: dict[str, Any] = {"attributes": {**BASE, "id": "2"}, "data": None}
SPOILT: dict[str, dict[str, Any]] = {
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


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_every_kind_can_fail(kind: str) -> None:
    """A case of any kind whose expectation is wrong is found out, with what was seen."""
    case = next(case for _, case in LIBRARY.all_cases if case["kind"] == kind and kinds.accepts(case))
    kinds.run(case)
    with pytest.raises(Unmet, match=r".{10}"):
        kinds.run({**case, **SPOILT[kind]})


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("D-07/3", {"secret": "noon"}),
        ("S-04/1", {"referred": True}),
        ("S-04/3", {"referred": False}),
        ("X-37/1", {"heeds": {"dataclassification": ["internal"]}}),
        ("X-37/4", {"heeds": {}}),
        ("X-51/2", {"orders": ["first", "next", "next"]}),
    ],
)
def test_what_a_case_says_besides_can_fail(name: str, changed: dict[str, Any]) -> None:
    """Secrets, labels, references and other attributes are looked at, where a case has them."""
    case = next(case for _, case in LIBRARY.all_cases if case["id"] == name)
    kinds.run(case)
    with pytest.raises(Unmet):
        kinds.run({**case, **changed})


BROKEN: dict[str, Any] = {"value": {"json": 1}, "key": None, "headers": []}


@pytest.mark.parametrize(
    ("base", "changed"),
    [
        ({"kind": "attribute", "attribute": "x", "accepted": True}, {"value": "v", "typed": True}),
        ({"kind": "json-batch", "accepted": True}, {"batch": "["}),
        *[
            ({"kind": "encode", "event": {"attributes": BASE, "data": None}, "mode": mode}, changed)
            for mode, changed in [
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
def test_what_cannot_be_compared_is_unmet(base: dict[str, Any], changed: dict[str, Any]) -> None:
    """What is expected is of another kind than what came, or no sense: that is unmet, and no other error."""
    with pytest.raises(Unmet):
        kinds.run(base | changed)


def test_a_wrong_attribute_or_payload_is_found_out() -> None:
    """An event that was read is compared whole: each attribute, the data, and what was let pass."""
    case = next(c for _, c in LIBRARY.all_cases if c["id"] == "real/javascript-binary")
    for path, wrong in [
        (("strict", "attributes", "id"), "2"),
        (("strict", "data"), {"text": "{}"}),
        (("strict", "mode"), "structured"),
        (("lenient", "tolerated"), ["nothing"]),
    ]:
        spoilt: Any = copy.deepcopy(dict(case))
        inner = spoilt
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = wrong
        with pytest.raises(Unmet):
            kinds.run(spoilt)


def test_a_failure_counts_against_its_clause(tmp_path: Path) -> None:
    """A case that does not hold makes its clause, and no other, one that is not shown."""
    shutil.copytree(LIBRARY.folder, tmp_path / "data")
    file = tmp_path / "data" / "vectors" / "spec-rows" / "sdk.json"
    text = file.read_text("utf-8")
    assert text.count('"mode": "not-an-event"') == 1
    file.write_text(text.replace('"mode": "not-an-event"', '"mode": "structured"'), "utf-8")
    found = show_all(Library(tmp_path / "data"), with_tests=False)
    ((shown, why),) = [(s, why) for s, why in report.not_shown(found) if s.failures]
    assert shown.clause.id == "D-03"
    assert "the mode must be 'structured', not 'not-an-event'" in why


def test_tests_that_fail_or_are_missing_are_told(tmp_path: Path) -> None:
    """A named test passes, fails with its message, or is not there; parameters count together."""
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [0, 1])\n"
        "def test_some(n):\n    assert n == 0, 'n is one'\n"
        "def test_good():\n    pass\n",
        "utf-8",
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", "utf-8")
    results = run_tests(tmp_path, ["test_x.py::test_some", "test_x.py::test_good"])
    assert results["test_x.py::test_good"] is None
    failure = results["test_x.py::test_some"]
    assert failure is not None
    assert "n is one" in failure.seen
    missing = run_tests(tmp_path, ["test_x.py::test_none"])["test_x.py::test_none"]
    assert isinstance(missing, Failure)


@pytest.mark.parametrize("text", ["", "[[clause]]\nid = 1\n", "not toml", '[[clause]]\nid = "A"\n'])
def test_data_that_is_none_is_said_to_be(tmp_path: Path, text: str) -> None:
    """A folder without clauses, or with something else in their place, is named in the error."""
    with pytest.raises(DataMissing, match=r"clauses\.toml"):
        _ = Library(tmp_path).clauses
    (tmp_path / "clauses.toml").write_text(text, "utf-8")
    with pytest.raises(DataMissing, match=r"clauses\.toml"):
        _ = Library(tmp_path).clauses


def test_the_flat_records_are_of_today() -> None:
    """``records.json`` holds every record of the cases, keeps the schema, and is met itself."""
    text = (LIBRARY.folder / "records.json").read_text("utf-8")
    assert text == flat.document(LIBRARY), f"make it anew: {flat.COMMAND}"
    document = json.loads(text)
    assert Schema(LIBRARY.schema).errors(document) == []
    assert len({case["id"] for case in document["cases"]}) == len(document["cases"]) > 1500
    for case in document["cases"]:
        kinds.run(case)


@pytest.mark.broker
@pytest.mark.slow
def test_the_report_is_of_today() -> None:
    """``report.md`` is what the command writes, tests run and all; and nothing speaks against a clause."""
    found = show_all(LIBRARY)
    assert [failure for shown in found for failure in shown.failures] == []
    assert (ROOT / "spec-conformance" / "report.md").read_text("utf-8") == report.markdown(
        found, LIBRARY.documents
    ), f"make it anew: {report.COMMAND}"
