"""The decode matrix: what a reader makes of records as they are met on topics."""

from __future__ import annotations

import pytest

from .judging import judge
from .loading import MATRIX, Case, as_record, document

MATRIX_CASES = document(MATRIX)["cases"]


@pytest.mark.parametrize("reading", ["strict", "lenient"])
@pytest.mark.parametrize("case", MATRIX_CASES, ids=[case["name"] for case in MATRIX_CASES])
def test_record_reads_as_the_matrix_says(case: Case, reading: str) -> None:
    """Each record gives the verdict, the event and the reports that stand in its row."""
    judge(as_record(case["record"]), case[reading], lenient=reading == "lenient")


def test_matrix_is_whole() -> None:
    """All 67 rows are there, in 103 records, and no name stands twice."""
    assert {case["row"] for case in MATRIX_CASES} == set(range(1, 68))
    assert len({case["name"] for case in MATRIX_CASES}) == len(MATRIX_CASES) == 103
