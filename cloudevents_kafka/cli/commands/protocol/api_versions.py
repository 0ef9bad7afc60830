"""``protocol api-versions``: what a broker takes, what is declared here, and what fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from cloudevents_kafka.cli.kafka.protocol_client import live_options, reaching, take_way
from cloudevents_kafka.cli.records.json_lines import encoded
from cloudevents_kafka.cli.terminal.signals import Interrupts

if TYPE_CHECKING:
    from cloudevents_kafka.protocol.schema import Versions

_HELP: Final = """Ask a broker which versions of which requests it takes.

Shows for each API its key and name, the broker's versions, those that this library
declares, those that its client makes use of, and which one of these the client picks.

\b
cloudevents-kafka protocol api-versions localhost:9092
"""
_HEAD: Final = ("key", "api", "broker", "declared", "client", "picks")
_OLD: Final = (
    "cannot be asked, as those of 0.8 and 0.9 cannot; "
    "these are the versions that they have in common (groups came with 0.9)"
)


class Row(msgspec.Struct, frozen=True):
    """An API; ranges of versions as text, "" where a side has none."""

    key: int
    api: str
    broker: str
    declared: str
    client: str
    picks: int | None


@click.command(help=_HELP, short_help="What a broker takes, and what fits.")
@live_options
@click.option("--json", "as_json", is_flag=True, help="A JSON line for each API.")
def command(*, as_json: bool, **options: Any) -> None:
    """Ask, and print what is answered."""
    from cloudevents_kafka.protocol.client.api_versions import OLD, OLDEST

    way = take_way(options)
    with Interrupts() as interrupts, interrupts.waiting(), reaching(way) as client:
        offered = client.api_versions()
        if offered in (OLD, OLDEST):
            client.metadata([])  # what is no broker at all does not answer this either
            click.echo(f"cloudevents-kafka: broker {way.broker} {_OLD}", err=True)
    found = rows(offered)
    if as_json:
        click.echo("\n".join(encoded(msgspec.structs.asdict(row)).decode() for row in found))
    else:
        click.echo(table(found))


def rows(offered: Mapping[int, Versions]) -> list[Row]:
    """Put side by side what a broker offers and what there is here, by API key."""
    from cloudevents_kafka.protocol.api_keys import api_name
    from cloudevents_kafka.protocol.client.api_versions import SPOKEN
    from cloudevents_kafka.protocol.messages import APIS

    def row(key: int) -> Row:
        theirs, spoken = offered.get(key), SPOKEN.get(key)
        common = spoken.common(theirs) if theirs is not None and spoken is not None else None
        picks = common.last if common is not None and common.first <= common.last else None
        declared = str(APIS[key].versions) if key in APIS else ""
        return Row(key, api_name(key), str(theirs or ""), declared, str(spoken or ""), picks)

    return [row(key) for key in sorted({*offered, *APIS})]


def table(found: list[Row]) -> str:
    """Lay rows out under their heads."""
    cells = [_HEAD, *(tuple(map(_shown, msgspec.structs.astuple(row))) for row in found)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def _shown(value: object) -> str:
    return "-" if value in {None, ""} else str(value)
