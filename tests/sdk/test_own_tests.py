"""The SDK's own tests run against the functions here; a difference that is not listed is an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import sdk_own_tests as script

VERSION_2 = """
from cloudevents.core.bindings.kafka import to_binary_event
from cloudevents.core.v1.event import CloudEvent

def test_data():
    event = CloudEvent({"source": "/", "type": "t"}, "hello")
    assert to_binary_event(event).value == b"hello"
"""
VERSION_1 = """
import datetime
from cloudevents.v1.http import CloudEvent
from cloudevents.v1.kafka.conversion import to_binary

class TestTime:
    def test_time(self):
        time = datetime.datetime(2000, 1, 1, 6, 42, 33).isoformat()
        event = CloudEvent({"source": "/", "type": "t", "time": time, "datacontenttype": "foo"})
        assert to_binary(event).headers["ce_time"] == b"2000-01-01T06:42:33+00:00"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for file, text in zip(script.FILES, (VERSION_2, VERSION_1), strict=True):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text, "utf-8")
    return tmp_path


def test_tests_run_against_the_functions_here(checkout, monkeypatch, capsys) -> None:
    """With corrected fixtures, all tests pass but one that is listed."""
    names = {"test": "test_kafka::test_data", "sdk": "a", "here": "b", "judged": "Because."}
    monkeypatch.setitem(script.LISTED, "difference", [names])
    assert script.main(str(checkout)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 tests of the SDK: 1 passed, 1 failed"
    assert lines[1].startswith("- corrected: The times of the fixtures")
    assert lines[-1] == "- test_kafka::test_data: a -> b. Because."


@pytest.mark.parametrize(
    ("found", "last"),
    [
        ({"a": False, "b": False}, "- b: FAILS, and is not listed"),
        ({"a": True}, "- a: is listed, and does not fail"),
        ({}, "- a: is listed, and does not fail"),
        ({"a": False, "b": True}, None),
    ],
)
def test_a_difference_must_be_listed(monkeypatch, found: dict[str, bool], last: str | None) -> None:
    """A test that fails must have a judgement, and one with a judgement must fail."""
    listed = {"test": "a", "sdk": "x", "here": "y", "judged": "Because."}
    monkeypatch.setitem(script.LISTED, "difference", [listed])
    text, as_listed = script.report(found)
    assert as_listed is (last is None)
    assert text.endswith(last or "- a: x -> y. Because.")


def test_a_checkout_of_something_else(checkout) -> None:
    """Tests that do not import the SDK's functions are not run."""
    (checkout / next(iter(script.FILES))).write_text("def test_nothing(): pass\n", "utf-8")
    with pytest.raises(SystemExit, match=r"must import once from cloudevents\.core\.bindings\.kafka, got 0"):
        script.main(str(checkout))


@pytest.mark.release
@pytest.mark.skipif("CLOUDEVENTS_SDK" not in os.environ, reason="CLOUDEVENTS_SDK must be a checkout")
def test_the_tests_of_the_sdk() -> None:
    """The SDK's own tests pass, but for those that are listed."""
    assert script.main(os.environ["CLOUDEVENTS_SDK"]) == 0
