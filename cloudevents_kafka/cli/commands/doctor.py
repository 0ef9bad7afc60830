"""``doctor``: print which parts are installed here, which are missing, and which commands would work."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import click

from cloudevents_kafka.cli.kafka.servers import ask_broker, ask_registry
from cloudevents_kafka.cli.kafka.settings import config_option, pop_settings, setting_option, timeout_option
from cloudevents_kafka.cli.needs import (
    EXTRAS,
    Check,
    Finding,
    as_list,
    class_archive,
    connector,
    java,
    kafka_jars,
    packages,
    table_format,
)
from cloudevents_kafka.cli.terminal.completion import complete_from
from cloudevents_kafka.cli.terminal.errors import BAD_USAGE, BROKER_FAILURE, BrokerFailure
from cloudevents_kafka.cli.terminal.text import escape_lines, near, print_lines
from cloudevents_kafka.primitives.text_table import format_table
from cloudevents_kafka.spark.table_formats import TABLE_FORMATS

PARTS: Final[dict[str, Check]] = {
    **{f"extra {name}": packages(name) for name in sorted(EXTRAS.keys() - {"cli"})},
    "Java": java,
    "Kafka": kafka_jars,
    "connector": connector,
    "class archive": class_archive,
    **{name.capitalize(): table_format(name) for name in TABLE_FORMATS},
}
_PIPELINE: Final = ("extra spark", "Java", "connector")
_TABLES: Final = tuple(map(str.capitalize, TABLE_FORMATS))
COMMAND_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("consume", "produce", "topics", "groups", "stats", "replay", "decode", "spark-zip", "protocol"), ()
    ),
    "produce --format protobuf": ("extra protobuf",),
    "broker": ("Java", "Kafka"),
    "demo": (*_PIPELINE, "Kafka"),
    "pipeline": _PIPELINE,
    "pipeline --once": (*_PIPELINE, "class archive"),
    **{f"pipeline --to {name}": (*_PIPELINE, name.capitalize()) for name in TABLE_FORMATS},
    "pipeline --metrics-port": (*_PIPELINE, "extra metrics"),
    "report": ("extra report",),
    "report --out": ("extra report", "extra spark", "Java", *_TABLES),
    "table": ("extra spark", "Java", *_TABLES),
    "spark-jar": ("extra spark",),
    "protocol produce --compression": ("extra protocol",),
}
"""The parts that each command needs; an option that needs more parts has its own entry."""
_BROKER: Final = "broker"
_OF_BROKER: Final = frozenset(
    {
        *("consume", "produce", "topics", "groups", "stats", "replay", "pipeline"),
        "protocol produce --compression",
    }
)
"""The commands that always need the broker that the option -b names."""
_OF_BROKER_IN_PART: Final = {
    "protocol": "decode and grammar",
    "report": "--out, --table and --summary-json",
}
"""What a command can do without the broker that the option -b names."""
_PACKAGES: Final = ("cloudevents", "confluent-kafka", "fastavro", "msgspec", "click")


@click.command()
@click.argument(
    "commands", nargs=-1, metavar="[COMMAND]...", shell_complete=complete_from(lambda: COMMAND_NEEDS)
)
@click.option("--fetch", is_flag=True, help="Fetch the jars that are missing.")
@click.option(
    "-b",
    "--brokers",
    "bootstrap_servers",
    metavar="HOST:PORT,…",
    help="Check whether these brokers answer.",
)
@click.option("--registry", metavar="URL", help="Check whether this schema registry answers.")
@setting_option
@config_option
@timeout_option
def command(
    commands: tuple[str, ...], registry: str | None, timeout: float, *, fetch: bool, **options: Any
) -> None:
    """Print what is installed, what is missing, and which commands would work here.

    Checks packages, Java, and the jars in the cache. Also asks a broker and a schema registry if you name
    them. For each problem, the command prints what to do. The command starts nothing, and downloads jars only
    with --fetch.

    If you name commands, --fetch downloads only the jars that these commands need without options. If you
    name a command together with an option, the jars for this option are downloaded, too. The exit code is 2
    if a named command would not work, and 3 if the broker or the registry does not answer.

    \b
    cloudevents-kafka doctor
    cloudevents-kafka doctor broker "pipeline --to delta" --fetch
    cloudevents-kafka doctor -b localhost:9092 --registry http://localhost:8081
    """
    chosen = _select(commands)
    shown = _needs_of(chosen) if commands else PARTS.keys()
    wanted = _needs_of(commands) if commands else shown
    settings = pop_settings(options)
    named = settings.effective.keys() & {"bootstrap.servers", "metadata.broker.list"}
    servers = {
        _BROKER: _ask(partial(ask_broker, settings, timeout) if named else None, "-b HOST:PORT"),
        "registry": _ask(partial(ask_registry, registry, timeout) if registry else None, "--registry URL"),
    }
    findings = {name: check(fetch and name in wanted) for name, check in PARTS.items() if name in shown}
    print_lines(_report(findings, servers, chosen).split("\n"))
    if any(finding.problem for finding in servers.values()):
        raise click.exceptions.Exit(BROKER_FAILURE)
    if commands and _missing(wanted, findings):
        raise click.exceptions.Exit(BAD_USAGE)


def _select(commands: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the parts that commands and their options need; no name stands for all commands."""
    names = list(dict.fromkeys(map(_program, COMMAND_NEEDS)))
    for name in commands:
        if name not in COMMAND_NEEDS:
            options = [one for one in COMMAND_NEEDS if _program(one) == _program(name)]
            known = options or names
            raise click.UsageError(
                f"COMMAND must be one of {', '.join(known)}, got {name}{near(name, known)}"
            )
    programs = {*map(_program, commands or COMMAND_NEEDS)}
    return {name: needs for name, needs in COMMAND_NEEDS.items() if _program(name) in programs}


def _program(name: str) -> str:
    """Return the first word of a command's name; a subcommand or an option may follow this word."""
    return name.partition(" ")[0]


def _needs_of(names: Iterable[str]) -> set[str]:
    return {need for name in names for need in COMMAND_NEEDS[name]}


def _ask(server: Callable[[], str] | None, option: str) -> Finding:
    """Return the answer of a server, or an error if the server does not answer."""
    try:
        return Finding(f"not asked; pass {option}" if server is None else server())
    except BrokerFailure as error:
        return Finding(problem=error.format_message())


def _report(
    findings: Mapping[str, Finding], servers: Mapping[str, Finding], chosen: Mapping[str, tuple[str, ...]]
) -> str:
    from confluent_kafka import libversion

    missing = [finding.problem for finding in (*findings.values(), *servers.values()) if finding.problem]
    states = {name: _state(finding) for name, finding in (*findings.items(), *servers.items())}
    if servers[_BROKER].problem:
        states[_BROKER] = "does not answer, see below"
    here = {
        "cloudevents-kafka": version("cloudevents-kafka"),
        "Python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        **{name: version(name) for name in _PACKAGES},
        "librdkafka": libversion()[0],
        **states,
    }
    silent = bool(servers[_BROKER].problem)
    work = {name: _outlook(findings, name, needs, silent=silent) for name, needs in chosen.items()}
    tables = {"What is here": here, "What would work": work}
    parts = [f"{title}\n{format_table(None, [*table.items()])}" for title, table in tables.items()]
    return "\n\n".join(
        [*parts, *([f"What is missing, and what to do\n{escape_lines(as_list(missing))}"] if missing else [])]
    )


def _state(finding: Finding) -> str:
    problem = "not in the cache, see below" if finding.later else "missing, see below"
    return finding.found or (problem if finding.problem else "depends on PySpark")


def _missing(needs: Iterable[str], findings: Mapping[str, Finding]) -> list[str]:
    """Return the missing parts, except the parts that a command downloads when it starts."""
    return [need for need in needs if findings[need].problem and not findings[need].later]


def _outlook(findings: Mapping[str, Finding], name: str, needs: tuple[str, ...], *, silent: bool) -> str:
    """Return a text that says whether a command would work on this machine.

    ``silent`` says that the broker did not answer.
    """
    broker = [_BROKER] if silent and _OF_BROKER & {name, _program(name)} else []
    if missing := [*broker, *_missing(needs, findings)]:
        return f"no: {', '.join(missing)}"
    if silent and name in _OF_BROKER_IN_PART:
        return f"only {_OF_BROKER_IN_PART[name]}, without the broker"
    later = [need for need in needs if findings[need].later]
    return f"yes, fetches jars first: {', '.join(later)}" if later else "yes"
