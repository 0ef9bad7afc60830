"""The page of the other SDKs is current, and the declared deviations are complete."""

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
    """Import the scripts, which are a folder to run and not a package, by their names."""
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


def test_the_page_is_current(report):
    """``peers.md`` is the page of the data; python spec-conformance/peers/report.py writes it."""
    assert report.TABLE.read_text(encoding="utf-8") == report.markdown(report.results())


def test_entries_are_complete(report, deviations):
    """A declared deviation has a unique id, a peer, findings, encodings and a clause."""
    entries = deviations.declared()
    assert len({entry["id"] for entry in entries}) == len(entries) > 100
    for entry in entries:
        assert entry["id"].startswith(f"{entry['peer']}-{entry['direction'][0]}"), entry
        assert set(entry) <= {
            *("id", "peer", "direction", "encodings", "when", "findings", "says", "does", "clause", "breach")
        }, entry
        assert entry["peer"] in deviations.peers(), entry
        assert entry["clause"] in report.clauses(), entry
        assert len(entry["does"]) > 15, entry
        assert entry["findings"], entry
        encodings = {"binary", *deviations.peers()[entry["peer"]]["formats"]}
        assert {encoding.removeprefix("kafka/") for encoding in entry["encodings"]} <= encodings, entry


def test_conditions_name_known_features(deviations):
    """A condition has no unknown features, which would be true never or always."""
    events = sys.modules["events"]
    known = {feature for sample in events.samples(7, 2500) for feature in sample.features}
    words = {
        word.removeprefix("!")
        for entry in deviations.declared()
        for alternative in entry.get("when", [])
        for word in alternative.split()
    }
    assert words - known == set()


def test_each_entry_was_found(report, deviations):
    """The run of the page found each deviation that is declared for its encodings."""
    for peer, run in report.results()["peers"].items():
        used = {at.split(" ")[1] for at in run["exchanged"]}
        declared = {
            entry["id"]
            for entry in deviations.declared()
            if entry["peer"] == peer and used.intersection(entry["encodings"])
        }
        assert declared == set(run["found"])


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
    """All features of one alternative must be present, and those with ! absent."""
    entry = {"peer": "go", "direction": "reads", "encodings": ["binary"], "when": when}
    known = frozenset(features.split())
    assert deviations.applies(entry, "go", "reads", "binary", known) is applies
    assert deviations.applies(entry, "go", "reads", "kafka/binary", known) is applies
    assert not deviations.applies(entry, "go", "reads", "json", known)
    assert not deviations.applies(entry, "go", "writes", "binary", known)
    assert not deviations.applies(entry, "java", "reads", "binary", known)


def test_an_undeclared_difference_is_a_surprise(report, deviations):
    """A run reports undeclared findings and declared ones that are not found."""
    exchange, events = sys.modules["exchange"], sys.modules["events"]
    sample = next(one for one in events.samples(7, 100) if "partitionkey" in one.features)
    counts = deviations.RunCounts()
    for findings in (["record: key is partitionkey"], [], ["record: key is partitionkey", "id missing"]):
        counts.add("go", [exchange.Exchange(sample, "writes", "binary", frozenset(findings))])
    assert [bool(sample_wanted) for _, sample_wanted in counts.surprises] == [True, True]
    assert "go-w6" not in counts.not_found("go")
    assert "go-w7" in counts.not_found("go")


def test_own_records_have_no_findings(report):
    """A sample that this library writes and reads does not differ, so findings are about the peer."""
    exchange, compare, events = (sys.modules[name] for name in ("exchange", "compare", "events"))
    for name in ("binary", "json"):
        encoding = compare.Encoding(name)
        for sample in events.samples(3, 300):
            compared = exchange.compare_record(sample, encoding, exchange.own_record(sample, encoding))
            assert compared.findings == frozenset(), compared


def test_a_build_that_fails(tmp_path):
    """The output of a toolchain that fails is printed; the exit code is 1."""
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
