"""Declared deviations: which findings are expected of a peer for which events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from exchange import Exchange

Json = dict[str, Any]
_NOT_OF_THE_EVENT: Final = ("record: ", "strict: ", "lenient: ", "client: ")
HERE: Final = Path(__file__).parent
SOURCE: Final = HERE / "deviations.json"
BROKER: Final = "kafka/"
"""Stands before the name of a way that leads through a real broker, with the peer's own client."""


@cache
def peers() -> dict[str, Json]:
    """Read what is known of the peers, by their folders' names."""
    found: dict[str, Json] = json.loads((HERE / "peers.json").read_text(encoding="utf-8"))["peers"]
    return found


@cache
def declared() -> list[Json]:
    """Read the declared deviations."""
    found: list[Json] = json.loads(SOURCE.read_text(encoding="utf-8"))["deviations"]
    return found


def applies(entry: Json, peer: str, direction: str, way: str, features: frozenset[str]) -> bool:
    """Tell whether a deviation is expected: of this peer, in this direction, on this way, for these features.

    ``when`` is a list of alternatives, each of features that all have to be there, or not with ``!``.
    """
    if entry["peer"] != peer or entry["direction"] != direction or not _on(entry["ways"], way):
        return False
    return any(
        all(_holds(word, features) for word in alternative.split()) for alternative in entry.get("when", [""])
    )


def _on(ways: list[str], way: str) -> bool:
    """Tell whether a way is named; what is so in memory is so through a broker too."""
    return way in ways or way.removeprefix(BROKER) in ways


def _holds(word: str, features: frozenset[str]) -> bool:
    return word[1:] not in features if word.startswith("!") else word in features


@dataclass
class Tally:
    """What a run showed: counts, surprises, and how often each declared deviation was seen."""

    exchanged: Counter[tuple[str, str]] = field(default_factory=Counter)
    alike: Counter[tuple[str, str]] = field(default_factory=Counter)
    everyday: Counter[tuple[str, str]] = field(default_factory=Counter)
    everyday_alike: Counter[tuple[str, str]] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    surprises: list[tuple[Exchange, frozenset[str]]] = field(default_factory=list)

    def add(self, peer: str, exchanges: Iterable[Exchange]) -> None:
        """Count exchanges, and compare each with what is declared."""
        for one in exchanges:
            at = one.direction, one.way
            self.exchanged[at] += 1
            self.alike[at] += not one.findings
            self.everyday[at] += one.sample.everyday
            self.everyday_alike[at] += one.sample.everyday and not one.findings
            entries = _expected(peer, one)
            wanted = _findings(entries)
            seen = [entry for entry in entries if wanted.intersection(entry["findings"])]
            self.seen.update(entry["id"] for entry in seen)
            if wanted != one.findings or any(entry.get("says", "") not in one.said for entry in seen):
                self.surprises.append((one, wanted))

    def unseen(self, peer: str) -> list[str]:
        """Give the declared deviations of the peer, on the ways that were tried, that no event showed."""
        tried = {way for _, way in self.exchanged}
        return [
            entry["id"]
            for entry in declared()
            if entry["peer"] == peer and not self.seen[entry["id"]] and tried.intersection(entry["ways"])
        ]


def _expected(peer: str, one: Exchange) -> list[Json]:
    """Give the entries that apply; a refusal leaves nothing else of the event to see."""
    entries = [
        entry for entry in declared() if applies(entry, peer, one.direction, one.way, one.sample.features)
    ]
    refusals = [entry for entry in entries if entry["findings"] == ["refused"]]
    if not refusals:
        return entries
    refusal = next((entry for entry in refusals if entry.get("says", "") in one.said), refusals[0])
    return [refusal, *(entry for entry in entries if entry["findings"][0].startswith("client: "))]


def _findings(entries: list[Json]) -> frozenset[str]:
    """Unite what entries find; where even the lenient reader refuses, there is no event to look at."""
    found = frozenset(finding for entry in entries for finding in entry["findings"])
    if any(finding.startswith("lenient: ") for finding in found):
        return frozenset(finding for finding in found if finding.startswith(_NOT_OF_THE_EVENT))
    return found
