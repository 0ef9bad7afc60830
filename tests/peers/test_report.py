"""The table of the other SDKs is current, and what is declared of them is whole; the SDKs are not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parents[2] / "spec-conformance" / "peers"
MODULES = {path.stem for path in PEERS.glob("*.py")}


@pytest.fixture
def report(monkeypatch):
    """The scripts are a folder to run, no package: they see each other by their bare names."""
    monkeypatch.syspath_prepend(PEERS)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import report

    yield report
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.fixture
def deviations(report):
    return sys.modules["deviations"]


def test_the_table_is_current(report):
    """The Markdown is what the data make; else: python spec-conformance/peers/report.py."""
    assert report.TABLE.read_text(encoding="utf-8") == report.made(report.results())


def test_entries_are_whole(report, deviations):
    """A declared deviation has an id of its own, and says of whom, what, where and against which clause."""
    entries = deviations.declared()
    assert len({entry["id"] for entry in entries}) == len(entries) > 100
    for entry in entries:
        assert entry["id"].startswith(f"{entry['peer']}-{entry['direction'][0]}"), entry
        assert set(entry) <= {
            *("id", "peer", "direction", "ways", "when", "findings", "says", "does", "clause", "breach")
        }, entry
        assert entry["peer"] in deviations.peers(), entry
        assert entry["clause"] in report.clauses(), entry
        assert len(entry["does"]) > 15, entry
        assert entry["findings"], entry
        ways = {"binary", *deviations.peers()[entry["peer"]]["formats"]}
        assert {way.removeprefix("kafka/") for way in entry["ways"]} <= ways, entry


def test_conditions_name_features_that_there_are(deviations):
    """A misspelt feature would make a condition that never holds, or always."""
    events = sys.modules["events"]
    known = {feature for sample in events.samples(7, 2500) for feature in sample.features}
    words = {
        word.removeprefix("!")
        for entry in deviations.declared()
        for alternative in entry.get("when", [])
        for word in alternative.split()
    }
    assert words - known == set()


def test_each_entry_was_seen(report, deviations):
    """What is declared on a way that was tried was found in the run that the table tells of."""
    for peer, run in report.results()["peers"].items():
        tried = {at.split(" ")[1] for at in run["exchanged"]}
        declared = {
            entry["id"]
            for entry in deviations.declared()
            if entry["peer"] == peer and tried.intersection(entry["ways"])
        }
        assert declared == set(run["seen"])


@pytest.mark.parametrize(
    ("when", "features", "applies"),
    [
        (["a b"], "a b c", True),
        (["a b"], "a", False),
        (["a !b"], "a", True),
        (["a !b"], "a b", False),
        (["a", "b"], "b", True),
        ([""], "", True),
    ],
)
def test_a_condition_is_alternatives_of_features(deviations, when, features, applies):
    """All features of one alternative have to be there, and those with a ! must not."""
    entry = {"peer": "go", "direction": "reads", "ways": ["binary"], "when": when}
    told = frozenset(features.split())
    assert deviations.applies(entry, "go", "reads", "binary", told) is applies
    assert deviations.applies(entry, "go", "reads", "kafka/binary", told) is applies
    assert not deviations.applies(entry, "go", "reads", "json", told)
    assert not deviations.applies(entry, "go", "writes", "binary", told)
    assert not deviations.applies(entry, "java", "reads", "binary", told)


def test_an_undeclared_difference_is_a_surprise(report, deviations):
    """What is found and not declared, and what is declared and not found, both come up."""
    exchange, events = sys.modules["exchange"], sys.modules["events"]
    sample = next(one for one in events.samples(7, 100) if "partitionkey" in one.features)
    tally = deviations.Tally()
    for findings in (["record: key is partitionkey"], [], ["record: key is partitionkey", "id missing"]):
        tally.add("go", [exchange.Exchange(sample, "writes", "binary", frozenset(findings))])
    assert [bool(sample_wanted) for _, sample_wanted in tally.surprises] == [True, True]
    assert "go-w6" not in tally.unseen("go")
    assert "go-w7" in tally.unseen("go")


def test_a_record_of_ours_is_the_sample_again(report):
    """Written and read by ourselves, no sample differs: what a run finds is the peer's doing."""
    exchange, compare, events = (sys.modules[name] for name in ("exchange", "compare", "events"))
    for name in ("binary", "json"):
        way = compare.Way(name)
        for sample in events.samples(3, 300):
            judged = exchange.judge_record(sample, way, exchange.our_record(sample, way))
            assert judged.findings == frozenset(), judged


def test_a_build_that_fails_is_told(tmp_path):
    """Where a toolchain is there and does not do its work, its last words are told, and exit code is 1."""
    fake = tmp_path / "go"
    fake.write_text("#!/bin/sh\necho no way out >&2\nexit 1\n", "utf-8")
    fake.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, str(PEERS), "go"],
        env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no way out" in done.stdout
    assert "Traceback" not in done.stderr
