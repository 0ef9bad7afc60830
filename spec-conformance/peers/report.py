"""Write ../peers.md from the declared deviations and the counts of the last run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from deviations import BROKER, HERE, RunCounts, declared, peers

Json = dict[str, Any]
RESULTS: Final = HERE / "results.json"
TABLE: Final = HERE.parent / "peers.md"
_CLAUSES: Final = HERE.parent / "clauses.toml"
_DIRECTIONS: Final = {"reads": "the peer reads", "writes": "the peer writes"}

_HEAD: Final = """# The other SDKs, compared

Events exchanged between this library and the Kafka bindings of other CloudEvents SDKs, each in the version
named: the peer reads what this library writes, and this library reads what the peer writes, in binary mode
and in structured mode with each event format that both support. Each event is compared with the original,
attribute by attribute and byte by byte.

The events are generated to find differences: all attributes, extensions of each type, leap seconds,
nanoseconds, media types in any case, JSON values of each kind, keys that are not text, foreign headers.
Every eighth event is an everyday one, with a JSON object, a time in UTC and nothing unusual; half of these
have a key. A run must find exactly the differences of this page, with these counts: any other difference
fails it, and so does a difference that no longer occurs.

If the strict reader of this library accepts a record with a difference, nothing in the record shows it.
Not compared: the Go SDK's binding for confluent-kafka-go, which the Go module proxy does not have; Avro,
which no SDK supports in these versions; and the SDKs for C# and Ruby.

`python spec-conformance/peers --write` writes this page from `peers/deviations.json` and
`peers/results.json`. The clauses are those of [`clauses.toml`](clauses.toml). Corrections by users of the
SDKs are welcome.
"""


def results() -> Json:
    """Return the counts of the last run that was kept."""
    found: Json = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def write(runs: Mapping[str, RunCounts], seed: int) -> None:
    """Write the counts of a run, with those of the last one for other peers, and the page."""
    kept = results()["peers"] if RESULTS.exists() else {}
    kept.update({peer: counts(counted) for peer, counted in runs.items()})
    found = {"seed": seed, "peers": {peer: kept[peer] for peer in peers() if peer in kept}}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(markdown(found), encoding="utf-8")


def counts(counted: RunCounts) -> Json:
    """Return the counts of exchanges and of declared deviations."""
    return {
        "exchanged": {
            " ".join(at): [number, counted.equal[at], counted.everyday[at], counted.everyday_equal[at]]
            for at, number in sorted(counted.exchanged.items())
        },
        "found": dict(sorted(counted.found.items())),
    }


def markdown(found: Json) -> str:
    """Return the page in Markdown."""
    return "\n".join(
        [*_overview(found), *(line for peer in found["peers"] for line in _chapter(peer, found))]
    )


def _overview(found: Json) -> Iterator[str]:
    yield _HEAD
    yield "| peer | exchanges | without any difference | breaches | permitted differences |"
    yield "|---|---|---|---|---|"
    for peer, run in found["peers"].items():
        total, equal = (sum(numbers[at] for numbers in run["exchanged"].values()) for at in (0, 1))
        kinds = [
            sum(entry["breach"] is breach for entry in _entries(peer, found)) for breach in (True, False)
        ]
        yield f"| {peers()[peer]['name']} | {total} | {equal} | {kinds[0]} | {kinds[1]} |"
    yield ""


def _chapter(peer: str, found: Json) -> Iterator[str]:
    about, run = peers()[peer], found["peers"][peer]
    yield f"## {about['name']}\n"
    yield f"Versions: {about['versions']}.\n"
    yield f"API: {about['runner']}\n"
    yield "| | encoding | events | without any difference | everyday events | without any difference |"
    yield "|---|---|---|---|---|---|"
    for at, numbers in run["exchanged"].items():
        direction, encoding = at.split(" ")
        yield f"| {_DIRECTIONS[direction]} | {_named(encoding)} | {' | '.join(map(str, numbers))} |"
    for breach, title in ((True, "Breaches of the specification"), (False, "Permitted differences")):
        entries = [entry for entry in _entries(peer, found) if entry["breach"] is breach]
        if entries:
            yield f"\n{title}:\n"
            yield "| | deviation | encoding | events | clause | strict reader | lenient reader |"
            yield "|---|---|---|---|---|---|---|"
            yield from (_row(entry, run["found"][entry["id"]]) for entry in entries)
    yield ""


def _entries(peer: str, found: Json) -> list[Json]:
    numbers = found["peers"][peer]["found"]
    entries = [entry for entry in declared() if entry["peer"] == peer and entry["id"] in numbers]
    return sorted(entries, key=lambda entry: str(entry["direction"]))


def _row(entry: Json, number: int) -> str:
    does = ("writing, " if entry["direction"] == "writes" else "reading, ") + entry["does"]
    encodings = ", ".join(_named(encoding) for encoding in entry["encodings"])
    clause = f"{entry['clause']} ({clauses()[entry['clause']]})"
    strict, lenient = _readers(entry)
    cells = (entry["id"], does.replace("|", "/"), encodings, str(number), clause, strict, lenient)
    return f"| {' | '.join(cells)} |"


def _named(encoding: str) -> str:
    name = encoding.removeprefix(BROKER)
    text = "binary" if name == "binary" else f"structured {name}"
    return f"{text}, through a broker" if encoding != name else text


def _readers(entry: Json) -> tuple[str, str]:
    """Return how the readers of this library read what the peer wrote, if it wrote a record."""
    if entry["direction"] == "reads" or entry["findings"] == ["refused"]:
        return "", ""
    outcomes = {}
    for reader in ("strict", "lenient"):
        refusals = [
            found.partition(": ")[2] for found in entry["findings"] if found.startswith(f"{reader}: ")
        ]
        outcomes[reader] = ", ".join(refusals)
    if not outcomes["strict"]:
        return "reads it", "reads it"
    return outcomes["strict"], outcomes["lenient"] or "reads it"


@cache
def clauses() -> dict[str, str]:
    """Return the level and source of each clause, by id."""
    found = tomllib.loads(_CLAUSES.read_text(encoding="utf-8"))["clause"]
    return {clause["id"]: f"{clause['level']}, {clause['source']}" for clause in found}


if __name__ == "__main__":
    TABLE.write_text(markdown(results()), encoding="utf-8")
