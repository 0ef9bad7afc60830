"""The committed report and records are current."""

from __future__ import annotations

import json
from pathlib import Path

from conformance import Dataset, Result, flat_records, report, run_clauses
from conformance._dataset import as_case

DATASET = Dataset()
FOLDER = Path(__file__).parents[2] / "spec-conformance"


def test_the_records_are_current() -> None:
    """``records.json`` has every record of the cases, with unique ids, and its own cases hold."""
    text = (FOLDER / "records.json").read_text("utf-8")
    assert text == flat_records.document(DATASET), "run: make report"
    cases = [as_case(case, file="records.json") for case in json.loads(text)["cases"]]
    assert len({case.id for case in cases}) == len(cases) > 1500
    for case in cases:
        case.run()


def test_the_report_is_current() -> None:
    """``report.md`` is the report of a run in which every test that a clause names has passed.

    `make test` runs these tests: if one fails, it fails with or without this report.
    """
    names = {name for clause in DATASET.clauses for name in clause.tests}
    results = run_clauses(DATASET, tests={name: Result(name, "passed") for name in names})
    assert [failure for result in results for failure in result.failures] == []
    text = report.markdown(results, DATASET.documents)
    assert (FOLDER / "report.md").read_text("utf-8") == text, "run: make report"
