"""The kept samples of what the other SDKs write."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from cloudevents_kafka import Decoded, decode
from tests.support import peer_samples
from tests.support.cases import each
from tests.support.peer_samples import PEERS

SCRIPTS = Path(__file__).parents[2] / "spec-conformance" / "peers"


@pytest.fixture
def kept(monkeypatch):
    """Import the script that keeps samples by its name, and the modules that it imports."""
    names = {path.stem for path in SCRIPTS.glob("*.py")}
    monkeypatch.syspath_prepend(SCRIPTS)
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import kept

    yield kept
    for name in names:
        sys.modules.pop(name, None)


def test_the_page_is_current(kept):
    """``samples/README.md`` describes the data; python spec-conformance/peers --samples writes both."""
    assert kept.README.read_text(encoding="utf-8") == kept.page()


def test_each_peer_has_samples_of_each_encoding(kept):
    """Some hundreds of records are kept of each peer, in binary mode and in each of its formats."""
    assert sorted(kept.peers()) == PEERS
    for peer, about in kept.peers().items():
        counts = Counter(sample.encoding for sample in peer_samples.read(peer))
        assert counts == dict.fromkeys(["binary", *about["formats"]], kept.COUNT)


@each("peer", PEERS)
def test_reading_agrees_with_the_findings(peer):
    """The strict reader refuses exactly the records of which the findings say so."""
    for sample in peer_samples.read(peer):
        assert isinstance(decode(sample.record), Decoded) is sample.is_event, sample


@each("peer", PEERS)
def test_samples_have_all_kinds_of_events(peer):
    """The events have attributes of each type, each kind of data, offsets, and texts that are not ASCII."""
    events = [sample.event for sample in peer_samples.read(peer)]
    types = Counter(kind for event in events for _, kind, _ in event["attributes"])
    texts = [text for event in events for _, _, text in event["attributes"]]
    # Version 1 of the Python SDK writes only texts in binary mode, but all types in JSON.
    assert types.keys() >= {"String", "Boolean", "Integer", "Timestamp", "URI", "URI-reference"}
    assert {event["data"] and event["data"]["kind"] for event in events} == {None, "json", "text", "bytes"}
    assert sum(text.endswith("+05:30") for text in texts) > 10
    assert sum(not text.isascii() for text in texts) > 50
