"""The runner: it notices what does not hold, and its report is of today."""

from __future__ import annotations

import copy
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.conformance import cases, flat_records, raw_encoders, report
from cloudevents_kafka.conformance.assertions import Unmet, same
from cloudevents_kafka.conformance.dataset import DataMissing, Library
from cloudevents_kafka.conformance.runner import CannotTest, run_tests, show_all
from cloudevents_kafka.conformance.schema import Schema

LIBRARY = Library()
ROOT = Path(__file__).parents[2]
BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
HEADERS = [[f"ce_{name}", {"text": value}] for name, value in BASE.items()]
AVRO, PROTO = (
    [["content-type", {"text": f"application/cloudevents+{name}"}]] for name in ("avro", "protobuf")
)
DATUM = {"avro": "ff" * len(raw_encoders.avro(BASE))}
MESSAGE = {"protobuf": "ff" * len(raw_encoders.protobuf(BASE) or b"")}
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


@pytest.mark.parametrize("kind", cases.KINDS)
def test_every_kind_can_fail(kind: str) -> None:
    """A case of any kind whose expectation is wrong is found out, with what was seen."""
    case = next(case for _, case in LIBRARY.all_cases if case["kind"] == kind and cases.accepts(case))
    cases.run(case)
    with pytest.raises(Unmet, match=r".{10}"):
        cases.run({**case, **SPOILT[kind]})


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
    cases.run(case)
    with pytest.raises(Unmet):
        cases.run({**case, **changed})


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
        cases.run(base | changed)


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
            cases.run(spoilt)


def test_a_long_value_is_cut_to_where_it_differs() -> None:
    """Two values that differ are told where they first do, with what stands before and behind it."""
    with pytest.raises(Unmet) as told:
        same(b"a" * 3000 + b"one" + b"b" * 3000, b"a" * 3000 + b"two" + b"b" * 3000, "the data")
    expected, found = str(told.value).split(", not ")
    assert re.fullmatch("the data must be …a{10,}twob{10,}…", expected)
    assert re.fullmatch("…a{10,}oneb{10,}…", found)
    assert len(str(told.value)) < 300


@pytest.mark.parametrize(
    ("reader", "told"),
    [
        ("strict", "the verdict must be 'batch', not 'event': Event(id='1', source='"),
        ("lenient", "read leniently, the verdict must be 'batch', not 'event': Event(id='1', source='"),
    ],
)
def test_a_wrong_verdict_is_told_first(reader: str, told: str) -> None:
    """What was expected and what came stand before the event or the error, which may be long."""
    case = next(c for _, c in LIBRARY.all_cases if c["id"] == "real/javascript-binary")
    with pytest.raises(Unmet) as error:
        cases.run({**case, reader: {"verdict": "batch"}})
    assert str(error.value).startswith(told)


def test_a_failure_counts_against_its_clause(tmp_path: Path) -> None:
    """A case that does not hold makes its clause, and no other, one that is not shown."""
    shutil.copytree(LIBRARY.folder, tmp_path / "data")
    file = tmp_path / "data" / "vectors" / "spec-rows" / "sdk.json"
    text = file.read_text("utf-8")
    assert text.count('"mode": "not-an-event"') == 1
    file.write_text(text.replace('"mode": "not-an-event"', '"mode": "structured"'), "utf-8")
    found = show_all(Library(tmp_path / "data"), with_tests=False)
    (shown,) = [shown for shown in found if shown.word == "FAILED"]
    assert shown.clause.id == "D-03"
    assert [failure.seen for failure in shown.failures] == [
        "the mode must be 'structured', not 'not-an-event'"
    ]


def _repository(folder: Path, tests: str, conftest: str = "") -> Path:
    (folder / "test_x.py").write_text(tests, "utf-8")
    (folder / "conftest.py").write_text(conftest, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n", "utf-8")
    return folder


def test_tests_that_fail_are_told(tmp_path: Path) -> None:
    """A named test passes, or fails with its message, cut to one line; parameters count together."""
    checkout = _repository(
        tmp_path,
        "import pytest\n"
        "@pytest.mark.parametrize('n', [0, 1])\n"
        "def test_some(n):\n    assert n == 0, 'n is one' + 'x' * 9999\n"
        "def test_good():\n    pass\n",
    )
    results = run_tests(checkout, ["test_x.py::test_some", "test_x.py::test_good"])
    assert results["test_x.py::test_good"].word == "passed"
    failure = results["test_x.py::test_some"]
    assert failure.word == "FAILED"
    assert "n is one" in failure.seen
    assert "\n" not in failure.seen
    assert len(failure.seen) < 500


@pytest.mark.parametrize(
    ("tests", "conftest", "told"),
    [
        ("", "", "not found: "),
        ("def test_some(): pass", "import not_there", "ModuleNotFoundError: No module named 'not_there'"),
        ("import not_there\ndef test_some(): pass", "", "ModuleNotFoundError: No module named 'not_there'"),
        ("def test_some(): import not_there", "", "ModuleNotFoundError: No module named 'not_there'"),
        (
            "import pytest\ndef test_some(): pytest.importorskip('not_there')",
            "",
            "could not import 'not_there'",
        ),
    ],
)
def test_tests_that_cannot_be_run_fail_no_clause(
    tmp_path: Path, tests: str, conftest: str, told: str
) -> None:
    """Where a test, or a package that it needs, is missing, that is said with what to do, not a failure."""
    with pytest.raises(CannotTest, match=re.escape(told)) as error:
        run_tests(_repository(tmp_path, tests, conftest), ["test_x.py::test_some"])
    assert f"pip install -e '.[test]' (in {tmp_path})" in str(error.value)


def test_clauses_can_be_run_alone() -> None:
    """Of some clauses just their cases are run, and no tests where they have none."""
    told: list[tuple[int, str]] = []
    (shown,) = show_all(LIBRARY, ["D-03"], progress=lambda *what: told.append(what))
    assert told == [(3, "case")]
    assert (shown.word, shown.count("accepted"), shown.count("refused")) == ("shown", 2, 1)


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
    assert text == flat_records.document(LIBRARY), f"make it anew: {flat_records.COMMAND}"
    document = json.loads(text)
    assert Schema(LIBRARY.schema).errors(document) == []
    assert len({case["id"] for case in document["cases"]}) == len(document["cases"]) > 1500
    for case in document["cases"]:
        cases.run(case)


@pytest.mark.broker
@pytest.mark.slow
def test_the_report_is_of_today() -> None:
    """``report.md`` is what the command writes, tests run and all; and nothing speaks against a clause."""
    found = show_all(LIBRARY)
    assert [failure for shown in found for failure in shown.failures] == []
    assert (ROOT / "spec-conformance" / "report.md").read_text("utf-8") == report.markdown(
        found, LIBRARY.documents
    ), f"make it anew: {report.COMMAND}"
