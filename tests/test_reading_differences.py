"""The comparison of two checkouts reads many kinds of records, and finds differences."""

from __future__ import annotations

from pathlib import Path

from cloudevents_kafka import Decoded, Record, decode
from tests.support import reading_differences as script


def test_records_are_of_all_kinds() -> None:
    """Among the records are events of each mode, deviating ones, and each kind of error."""
    kinds: set[str] = set()
    for headers, value in script.records(3000, seed=1):
        item = decode(Record(headers=headers, value=value), lenient=True)
        accepted = isinstance(item, Decoded) and "deviating" * bool(item.tolerated)
        kinds.add(accepted or getattr(getattr(item, "error", None), "verdict", "event"))
    assert kinds == {"event", "deviating", "broken-event", "not-an-event", "unsupported-format", "batch"}


def test_the_same_checkout_has_no_differences() -> None:
    """Two processes read the same generated records, and the same code reads them alike."""
    assert list(script.differences(script.ROOT, 200, seed=3)) == []


def test_a_difference_is_found(tmp_path: Path) -> None:
    """A checkout that reads one record differently is found by it."""
    package = tmp_path / "cloudevents_kafka"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit(print('x\\n' * 200, end=''))")
    assert len(list(script.differences(tmp_path, 200, seed=3))) == 200
