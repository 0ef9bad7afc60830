"""``protocol grammar``: the grammar of a message in any of its versions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from cloudevents_kafka.cli.terminal.errors import BadUsage

if TYPE_CHECKING:
    from cloudevents_kafka.protocol.schema import Structure, Versions

_HELP: Final = """Print the grammar of a message, in the notation of the 0.8 guide.

NAME is that of a message, such as MetadataResponse, or of an API, for both of its
messages; without NAME the names are listed. VERSIONS are those to print, such as 0 or
3-5; without any, all that differ.

\b
cloudevents-kafka protocol grammar MetadataRequest 0
"""


@click.command(help=_HELP, short_help="Print the grammar of a message.")
@click.argument("name", required=False)
@click.argument("versions", nargs=-1, metavar="[VERSIONS]...")
def command(name: str | None, versions: tuple[str, ...]) -> None:
    """Print the grammar."""
    if name is None:
        click.echo("\n".join(f"{known}  {_versions(structure)}" for known, structure in _messages().items()))
        return
    wanted = [_range(text) for text in versions]
    paragraphs = [part for structure in _named(name) for part in _printed(structure, wanted)]
    click.echo("\n\n".join(paragraphs))


def _printed(structure: type[Structure], wanted: Sequence[Versions]) -> Iterator[str]:
    """Print a message in these versions, or all; those that are alike together."""
    from cloudevents_kafka.protocol.explain.grammar import text
    from cloudevents_kafka.protocol.schema import Versions

    runs: list[tuple[Versions, str]] = []
    for version in _chosen(structure, wanted):
        printed = text(structure, version)
        if runs and runs[-1][1] == printed and runs[-1][0].last == version - 1:
            runs[-1] = (Versions(runs[-1][0].first, version), printed)
        else:
            runs.append((Versions(version, version), printed))
    for range_, printed in runs:
        yield f"# {structure.__name__}, version{'s' * (range_.first < range_.last)} {range_}\n{printed}"


def _chosen(structure: type[Structure], wanted: Sequence[Versions]) -> list[int]:
    declared = _versions(structure)
    for range_ in wanted:
        if range_.first not in declared or range_.last not in declared:
            raise BadUsage(f"{structure.__name__} has the versions {declared}, not {range_}")
    ranges = wanted or [declared]
    return sorted({version for range_ in ranges for version in range(range_.first, range_.last + 1)})


def _named(name: str) -> list[type[Structure]]:
    messages = {known.lower(): structure for known, structure in _messages().items()}
    asked = name.lower()
    found = [messages[key] for key in (asked, f"{asked}request", f"{asked}response") if key in messages]
    if found:
        return found[:1] if asked in messages else found
    known = sorted(messages, key=lambda key: -difflib.SequenceMatcher(None, asked, key).ratio())
    listed = ", ".join(_listed(messages[key]) for key in known)
    raise BadUsage(f"no message is called {name!r}; there are, the nearest first: {listed}")


def _messages() -> dict[str, type[Structure]]:
    from cloudevents_kafka.protocol.messages import APIS
    from cloudevents_kafka.protocol.messages.headers import RequestHeader, ResponseHeader
    from cloudevents_kafka.protocol.messages.produce import MessageSetEntry

    both: list[type[Structure]] = [
        message for api in APIS.values() for message in (api.request, api.response)
    ]
    both += [RequestHeader, ResponseHeader, MessageSetEntry]
    return {_listed(message): message for message in both}


def _listed(structure: type[Structure]) -> str:
    """Return the name to ask by: the class's, but for the set, which is known by what it is."""
    from cloudevents_kafka.protocol.messages.produce import MessageSetEntry

    return "MessageSet" if structure is MessageSetEntry else structure.__name__


def _versions(structure: type[Structure]) -> Versions:
    from cloudevents_kafka.protocol.schema import spec_of

    return spec_of(structure).versions


def _range(text: str) -> Versions:
    from cloudevents_kafka.protocol.schema import Versions

    first, _, last = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) <= 5 for part in (first, last or first)):
        raise BadUsage(f"{text!r} is no version: write a number, such as 3, or a range, such as 0-2")
    found = Versions(int(first), int(last or first))
    if found.first > found.last:
        raise BadUsage(f"the versions {text} end before they begin")
    return found
