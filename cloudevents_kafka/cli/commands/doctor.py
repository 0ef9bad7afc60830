"""``doctor``: what is installed here, what is missing, and which commands would work."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

import click

from cloudevents_kafka import __version__
from cloudevents_kafka.cli.kafka.servers import ask_broker, ask_registry
from cloudevents_kafka.cli.kafka.settings import Settings, config_option, pop_settings, timeout_option
from cloudevents_kafka.cli.needs import (
    Check,
    Finding,
    as_list,
    connector,
    java,
    kafka_jars,
    packages,
    table_format,
)
from cloudevents_kafka.cli.terminal.errors import BAD_USAGE, BROKER_FAILURE, BrokerFailure
from cloudevents_kafka.primitives.text_table import format_table

PARTS: Final[dict[str, Check]] = {
    **{f"extra {name}": packages(name) for name in ("protobuf", "protocol", "spark")},
    "Java": java,
    "Kafka": kafka_jars,
    "connector": connector,
    "Delta": table_format("delta"),
    "Iceberg": table_format("iceberg"),
}
_PIPELINE: Final = ("extra spark", "Java", "connector")
COMMAND_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("consume", "produce", "replay", "decode", "spark-zip", "protocol"), ()),
    "produce --format protobuf": ("extra protobuf",),
    "broker": ("Java", "Kafka"),
    "demo": (*_PIPELINE, "Kafka"),
    "pipeline": _PIPELINE,
    "pipeline --to delta": (*_PIPELINE, "Delta"),
    "pipeline --to iceberg": (*_PIPELINE, "Iceberg"),
    "table": ("extra spark", "Java", "Delta", "Iceberg"),
    "spark-jar": ("extra spark",),
    "protocol produce --compression": ("extra protocol",),
}
"""The parts that commands need, and options that need more than their command does."""
_PACKAGES: Final = ("cloudevents", "confluent-kafka", "fastavro", "msgspec", "click")


@click.command()
@click.argument("commands", nargs=-1, metavar="[COMMAND]...")
@click.option("--fetch", is_flag=True, help="Fetch the jars that are missing.")
@click.option("-b", "--brokers", metavar="HOST:PORT,…", help="Ask these brokers whether they answer.")
@click.option("--registry", metavar="URL", help="Ask this schema registry whether it answers.")
@click.option(
    "-X", "options", metavar="NAME=VALUE", multiple=True, help="A setting of the client. Repeatable."
)
@config_option
@timeout_option
def command(
    commands: tuple[str, ...], registry: str | None, timeout: float, *, fetch: bool, **options: Any
) -> None:
    """Print what is installed, what is missing, and which commands would work here.

    Looks at packages, Java, and the jars in the cache; asks a broker and a schema registry
    if they are named. Each problem has what to do. Starts nothing, and fetches nothing
    without --fetch.

    With names of commands, the exit code is 2 if one of them would not work; it is 3 if the
    broker or the registry does not answer.

    \b
    cloudevents-kafka doctor
    cloudevents-kafka doctor demo --fetch
    cloudevents-kafka doctor -b localhost:9092 --registry http://localhost:8081
    """
    chosen = _select(commands)
    needed = {need for needs in chosen.values() for need in needs} if commands else PARTS.keys()
    servers = _ask(pop_settings(options), registry, timeout)
    findings = {name: check(fetch) for name, check in PARTS.items() if name in needed}
    click.echo(_report(findings, servers, chosen))
    if any(finding.problem for finding in servers.values()):
        raise click.exceptions.Exit(BROKER_FAILURE)
    if commands and any(_missing(needs, findings) for needs in chosen.values()):
        raise click.exceptions.Exit(BAD_USAGE)


def _select(commands: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the needs of the commands, with their options; of all commands, if none is named."""
    names = list(dict.fromkeys(name.split()[0] for name in COMMAND_NEEDS))
    for name in commands:
        if name not in names:
            raise click.UsageError(f"COMMAND must be one of {', '.join(names)}, got {name}")
    return {name: COMMAND_NEEDS[name] for name in COMMAND_NEEDS if name.split()[0] in (commands or names)}


def _ask(settings: Settings, registry: str | None, timeout: float) -> dict[str, Finding]:
    """Return the answers of the servers that are named; an error of one hides no answer of another."""
    asked = {
        "broker": lambda: ask_broker(settings, timeout),
        "registry": lambda: ask_registry(registry or "", timeout),
    }
    hints = {"broker": "not asked; pass -b HOST:PORT", "registry": "not asked; pass --registry URL"}
    findings = {name: Finding(hint) for name, hint in hints.items()}
    named = {"broker": {"bootstrap.servers", "metadata.broker.list"} & settings.effective.keys()}
    for name in [name for name in asked if named.get(name, registry)]:
        try:
            findings[name] = Finding(asked[name]())
        except BrokerFailure as error:
            findings[name] = Finding(problem=error.format_message())
    return findings


def _report(
    findings: Mapping[str, Finding], servers: Mapping[str, Finding], chosen: Mapping[str, tuple[str, ...]]
) -> str:
    from confluent_kafka import libversion

    missing = [finding.problem for finding in (*findings.values(), *servers.values()) if finding.problem]
    here = [
        ["cloudevents-kafka", __version__],
        ["Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"],
        *([name, version(name)] for name in _PACKAGES),
        ["librdkafka", libversion()[0]],
        *([name, _state(finding)] for name, finding in (*findings.items(), *servers.items())),
    ]
    parts = [
        f"What is here\n{format_table(None, here)}",
        f"What would work\n{format_table(None, [_row(name, findings, chosen[name]) for name in chosen])}",
        *([f"What is missing, and what to do\n{as_list(missing)}"] if missing else []),
    ]
    return "\n\n".join(parts)


def _state(finding: Finding) -> str:
    if finding.found:
        return finding.found
    if not finding.problem:
        return "depends on PySpark"
    return "not in the cache, see below" if finding.later else "missing, see below"


def _missing(needs: tuple[str, ...], findings: Mapping[str, Finding]) -> list[str]:
    """Return the needs that a command cannot fetch by itself."""
    return [need for need in needs if findings[need].problem and not findings[need].later]


def _row(name: str, findings: Mapping[str, Finding], needs: tuple[str, ...]) -> list[str]:
    """Return a row of the table: the command, and whether it would work or why not."""
    if missing := _missing(needs, findings):
        return [name, f"no: {', '.join(missing)}"]
    later = [need for need in needs if findings[need].later]
    return [name, f"yes, fetches jars first: {', '.join(later)}" if later else "yes"]
