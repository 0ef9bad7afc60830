"""The declared deviations: the findings that a peer must have, by event."""

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
_NOT_ABOUT_THE_EVENT: Final = ("record: ", "strict: ", "lenient: ", "client: ")
HERE: Final = Path(__file__).parent
SOURCE: Final = HERE / "deviations.json"
BROKER: Final = "kafka/"
"""The prefix of an encoding that goes through a real broker, with the peer's own client."""


@cache
def peers() -> dict[str, Json]:
    """Return the descriptions of the peers, by name."""
    found: dict[str, Json] = json.loads((HERE / "peers.json").read_text(encoding="utf-8"))["peers"]
    return found


@cache
def declared() -> list[Json]:
    """Return the declared deviations."""
    found: list[Json] = json.loads(SOURCE.read_text(encoding="utf-8"))["deviations"]
    return found


def applies(entry: Json, peer: str, direction: str, encoding: str, features: frozenset[str]) -> bool:
    """Return whether a deviation applies to a peer, direction, encoding and features of an event.

    ``when`` is a list of alternatives: features that must all be present, or absent with ``!``.
    """
    if (
        entry["peer"] != peer
        or entry["direction"] != direction
        or not _applies_to(entry["encodings"], encoding)
    ):
        return False
    return any(
        all(_holds(word, features) for word in alternative.split()) for alternative in entry.get("when", [""])
    )


def _applies_to(encodings: list[str], encoding: str) -> bool:
    """Return whether an encoding is listed; one in memory also applies through a broker."""
    return encoding in encodings or encoding.removeprefix(BROKER) in encodings


def _holds(word: str, features: frozenset[str]) -> bool:
    return word[1:] not in features if word.startswith("!") else word in features


@dataclass
class RunCounts:
    """The counts of a run: exchanges, undeclared differences, and how often each deviation was found."""

    exchanged: Counter[tuple[str, str]] = field(default_factory=Counter)
    equal: Counter[tuple[str, str]] = field(default_factory=Counter)
    everyday: Counter[tuple[str, str]] = field(default_factory=Counter)
    everyday_equal: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    surprises: list[tuple[Exchange, frozenset[str]]] = field(default_factory=list)

    def add(self, peer: str, exchanges: Iterable[Exchange]) -> None:
        """Count exchanges and compare each with the declared deviations."""
        for one in exchanges:
            at = one.direction, one.encoding
            self.exchanged[at] += 1
            self.equal[at] += not one.findings
            self.everyday[at] += one.sample.everyday
            self.everyday_equal[at] += one.sample.everyday and not one.findings
            entries = _expected(peer, one)
            wanted = _findings(entries)
            found = [entry for entry in entries if wanted.intersection(entry["findings"])]
            self.found.update(entry["id"] for entry in found)
            if wanted != one.findings or any(entry.get("says", "") not in one.error for entry in found):
                self.surprises.append((one, wanted))

    def not_found(self, peer: str) -> list[str]:
        """Return the declared deviations of a peer, for the encodings of the run, that no event showed."""
        used = {encoding for _, encoding in self.exchanged}
        return [
            entry["id"]
            for entry in declared()
            if entry["peer"] == peer and not self.found[entry["id"]] and used.intersection(entry["encodings"])
        ]


def _expected(peer: str, one: Exchange) -> list[Json]:
    """Return the entries that apply; a refused event has no other findings."""
    entries = [
        entry
        for entry in declared()
        if applies(entry, peer, one.direction, one.encoding, one.sample.features)
    ]
    refusals = [entry for entry in entries if entry["findings"] == ["refused"]]
    if not refusals:
        return entries
    refusal = next((entry for entry in refusals if entry.get("says", "") in one.error), refusals[0])
    return [refusal, *(entry for entry in entries if entry["findings"][0].startswith("client: "))]


def _findings(entries: list[Json]) -> frozenset[str]:
    """Return the findings of entries; if the lenient reader refuses too, none is about the event."""
    found = frozenset(finding for entry in entries for finding in entry["findings"])
    if any(finding.startswith("lenient: ") for finding in found):
        return frozenset(finding for finding in found if finding.startswith(_NOT_ABOUT_THE_EVENT))
    return found
