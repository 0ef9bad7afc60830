"""``protocol grammar``: print the grammar of a message in any version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from cloudevents_kafka.cli.terminal.completion import complete_from
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.text import near
from cloudevents_kafka.protocol.explain.grammar import text as grammar_text
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.messages.produce import MessageSetEntry
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of


@click.command()
@click.argument("name", required=False, shell_complete=complete_from(lambda: list(_messages())))
@click.argument("versions", nargs=-1, metavar="[VERSIONS]...")
def command(name: str | None, versions: tuple[str, ...]) -> None:
    """Print the grammar of a message, in the notation of the 0.8 guide.

    NAME is a message, such as MetadataResponse, or an API. For an API, its request and its response are
    printed. Without NAME, all names are listed. VERSIONS are version numbers or ranges of versions, such as 0
    or 3-5. By default, all versions are printed; versions with equal grammars are grouped.

    \b
    cloudevents-kafka protocol grammar MetadataRequest 0
    """
    if name is None:
        click.echo("\n".join(f"{name}  {spec_of(message).versions}" for name, message in _messages().items()))
        return
    ranges = [_parse_range(text) for text in versions]
    paragraphs = [part for message in _find(name) for part in _grammars(message, ranges)]
    click.echo("\n\n".join(paragraphs))


def _grammars(message: type[Structure], ranges: Sequence[Versions]) -> Iterator[str]:
    """Yield the grammar of a message, once for each range of versions that have the same grammar."""
    runs: list[tuple[Versions, str]] = []
    for version in _selected(message, ranges):
        grammar = grammar_text(message, version)
        if runs and runs[-1][1] == grammar and runs[-1][0].last == version - 1:
            runs[-1] = (Versions(runs[-1][0].first, version), grammar)
        else:
            runs.append((Versions(version, version), grammar))
    for run, grammar in runs:
        yield f"# {message.__name__}, version{'s' * (run.first < run.last)} {run}\n{grammar}"


def _selected(message: type[Structure], ranges: Sequence[Versions]) -> list[int]:
    declared = spec_of(message).versions
    for range_ in ranges:
        if range_.first not in declared or range_.last not in declared:
            raise BadUsage(f"{message.__name__} has versions {declared}, got {range_}")
    return sorted(
        {number for range_ in ranges or [declared] for number in range(range_.first, range_.last + 1)}
    )


def _find(name: str) -> list[type[Structure]]:
    """Return the message with this name, or the request and the response of an API; ignore case."""
    messages = {known.lower(): message for known, message in _messages().items()}
    lower = name.lower()
    if lower in messages:
        return [messages[lower]]
    found = [messages[key] for key in (f"{lower}request", f"{lower}response") if key in messages]
    if found:
        return found
    advice = near(name, _messages()) or "; without a name, all names are listed"
    raise BadUsage(f"no message has the name {name!r}{advice}")


def _messages() -> dict[str, type[Structure]]:
    """Return the classes of messages as a dictionary by name; ``MessageSet`` has the class of its entries."""
    messages = [message for api in APIS.values() for message in (api.request, api.response)]
    messages += [RequestHeader, ResponseHeader]
    return {message.__name__: message for message in messages} | {"MessageSet": MessageSetEntry}


def _parse_range(text: str) -> Versions:
    first, _, last = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) <= 5 for part in (first, last or first)):
        raise BadUsage(f"a version must be a number, such as 3, or a range, such as 0-2, got {text!r}")
    range_ = Versions(int(first), int(last or first))
    if range_.first > range_.last:
        raise BadUsage(f"the first version of a range must not be above the last version, got {text}")
    return range_
