"""Makes ../peers.md of what is declared of the peers and of the counts of the last run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from deviations import BROKER, HERE, Tally, declared, peers

Json = dict[str, Any]
RESULTS: Final = HERE / "results.json"
TABLE: Final = HERE.parent / "peers.md"
_CLAUSES: Final = HERE.parent / "clauses.toml"
_DIRECTIONS: Final = {"reads": "the peer reads what we wrote", "writes": "we read what the peer wrote"}

_HEAD: Final = """# The other SDKs, compared

Events exchanged between this library and the Kafka bindings of other CloudEvents SDKs, each in the version
named: what we write is read by the peer, and what the peer writes is read by us, in binary mode and in
structured mode by each event format that both have. Each event is compared with what went in, attribute by
attribute and byte by byte.

The events are generated to find differences: all attributes, extensions of each type, leap seconds,
nanoseconds, media types in all spellings, JSON values of each kind, keys that are no text, headers of others.
Every eighth is an everyday event, with a JSON object, a time in UTC and nothing rare about it; half of these
have a key. A run has to find exactly what is listed here, as often: anything else fails it, and so does a
difference that no longer occurs.

Where our strict reader reads what a peer wrote otherwise than it should, nothing in the record tells so.
Not compared: the Go SDK's binding for confluent-kafka-go, which the Go module proxy does not have; Avro,
which none of these has in these versions; and the SDKs for C# and Ruby.

Made by `python spec-conformance/peers --write` from `peers/deviations.json` and `peers/results.json`; a test
compares. Clauses are those of [`clauses.toml`](clauses.toml). Corrections by those who know the SDKs are
welcome.
"""


def results() -> Json:
    """Read the counts of the last run that was kept."""
    found: Json = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def write(tallies: Mapping[str, Tally], seed: int) -> None:
    """Keep the counts of a run, of peers that were not in it those of the last one, and make the table."""
    kept = results()["peers"] if RESULTS.exists() else {}
    kept.update({peer: counts(tally) for peer, tally in tallies.items()})
    found = {"seed": seed, "peers": {peer: kept[peer] for peer in peers() if peer in kept}}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(made(found), encoding="utf-8")


def counts(tally: Tally) -> Json:
    """Give what is kept of a run: counts of exchanges and of declared deviations."""
    return {
        "exchanged": {
            " ".join(at): [number, tally.alike[at], tally.everyday[at], tally.everyday_alike[at]]
            for at, number in sorted(tally.exchanged.items())
        },
        "seen": dict(sorted(tally.seen.items())),
    }


def made(found: Json) -> str:
    """Write the table as Markdown."""
    return "\n".join(
        [*_overview(found), *(line for peer in found["peers"] for line in _chapter(peer, found))]
    )


def _overview(found: Json) -> Iterator[str]:
    yield _HEAD
    yield "| peer | exchanges | without any difference | breaches | permitted differences |"
    yield "|---|---|---|---|---|"
    for peer, run in found["peers"].items():
        total, alike = (sum(numbers[at] for numbers in run["exchanged"].values()) for at in (0, 1))
        kinds = [
            sum(entry["breach"] is breach for entry in _entries(peer, found)) for breach in (True, False)
        ]
        yield f"| {peers()[peer]['name']} | {total} | {alike} | {kinds[0]} | {kinds[1]} |"
    yield ""


def _chapter(peer: str, found: Json) -> Iterator[str]:
    about, run = peers()[peer], found["peers"][peer]
    yield f"## {about['name']}\n"
    yield f"Versions: {about['versions']}.\n"
    yield f"How it is called: {about['runner']}\n"
    yield "| | on | events | without any difference | everyday events | without any difference |"
    yield "|---|---|---|---|---|---|"
    for at, numbers in run["exchanged"].items():
        direction, way = at.split(" ")
        yield f"| {_DIRECTIONS[direction]} | {_named(way)} | {' | '.join(map(str, numbers))} |"
    for breach, title in ((True, "Breaches of the specification"), (False, "Permitted, and good to know")):
        entries = [entry for entry in _entries(peer, found) if entry["breach"] is breach]
        if entries:
            yield f"\n{title}:\n"
            yield "| | the peer | on | events | clause | our strict reader | our lenient reader |"
            yield "|---|---|---|---|---|---|---|"
            yield from (_row(entry, run["seen"][entry["id"]]) for entry in entries)
    yield ""


def _entries(peer: str, found: Json) -> list[Json]:
    seen = found["peers"][peer]["seen"]
    entries = [entry for entry in declared() if entry["peer"] == peer and entry["id"] in seen]
    return sorted(entries, key=lambda entry: str(entry["direction"]))


def _row(entry: Json, seen: int) -> str:
    does = ("writing, " if entry["direction"] == "writes" else "reading, ") + entry["does"]
    ways = ", ".join(_named(way) for way in entry["ways"])
    clause = f"{entry['clause']} ({clauses()[entry['clause']]})"
    strict, lenient = _readers(entry)
    return f"| {entry['id']} | {does.replace('|', '/')} | {ways} | {seen} | {clause} | {strict} | {lenient} |"


def _named(way: str) -> str:
    name = way.removeprefix(BROKER)
    told = "binary" if name == "binary" else f"structured {name}"
    return f"{told}, through a broker" if way != name else told


def _readers(entry: Json) -> tuple[str, str]:
    """Tell how our readers take what the peer wrote: with the differences that there are, or not."""
    if entry["direction"] == "reads" or entry["findings"] == ["refused"]:
        return "", ""
    told = {}
    for reader in ("strict", "lenient"):
        refusals = [
            found.partition(": ")[2] for found in entry["findings"] if found.startswith(f"{reader}: ")
        ]
        told[reader] = ", ".join(refusals)
    if not told["strict"]:
        return "reads it", "reads it"
    return told["strict"], told["lenient"] or "reads it"


@cache
def clauses() -> dict[str, str]:
    """Tell of each clause, by its id, how binding it is and where it stands."""
    found = tomllib.loads(_CLAUSES.read_text(encoding="utf-8"))["clause"]
    return {clause["id"]: f"{clause['level']}, {clause['source']}" for clause in found}


if __name__ == "__main__":
    TABLE.write_text(made(results()), encoding="utf-8")
