"""``pipeline``: write the records in topics to tables with Spark."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from cloudevents_kafka.cli.commands._pipeline_console import Console, print_summary
from cloudevents_kafka.cli.commands._pipeline_options import ChosenOptions, RunOptions
from cloudevents_kafka.cli.data_schemas import REGISTRY
from cloudevents_kafka.cli.kafka.cluster import ClusterView
from cloudevents_kafka.cli.kafka.logins import TOKEN_COMMAND, token_command
from cloudevents_kafka.cli.kafka.session import BrokerSession, ConnectionsRefused
from cloudevents_kafka.cli.kafka.settings import Settings, config_option
from cloudevents_kafka.cli.kafka.topic_names import complete_groups, complete_topics
from cloudevents_kafka.cli.needs import connector, java, packages, require, table_format
from cloudevents_kafka.cli.terminal.completion import Completer, complete_folders
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerFailure, ThresholdEnd
from cloudevents_kafka.cli.terminal.options import struct_options
from cloudevents_kafka.cli.terminal.parameters import FILE, option_group
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import near
from cloudevents_kafka.spark import pipeline
from cloudevents_kafka.spark.pipeline.landing import check_renames
from cloudevents_kafka.spark.pipeline.options.removed import OPTIONS, removed_text
from cloudevents_kafka.spark.table_formats import TABLE_FORMATS

_Command = TypeVar("_Command", bound=Callable[..., Any])
_COMPLETE: Final[Mapping[str, Completer]] = {
    "topics": complete_topics,
    "out": complete_folders,
    "checkpoint": complete_folders,
    "forget_topics": complete_topics,
    "group": complete_groups,
}
_ASK_SECONDS: Final = 2.0  # the longest wait for brokers before Spark starts

# Another folder, table, checkpoint or topic is needed.
_WRONG_USE: Final = (
    *(pipeline.InUse, pipeline.WrongStore, pipeline.WrongCheckpoint, pipeline.WrongTable),
    pipeline.TopicChanged,
)


def _removed_option(name: str) -> Callable[[_Command], _Command]:
    """Return a hidden option for an option that was removed; its error says which option to use instead."""
    option = f"--{name.replace('_', '-')}"

    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:  # noqa: ARG001
        if value is not None:
            raise BadUsage(removed_text(name, option))

    return click.option(option, hidden=True, expose_value=False, is_eager=True, callback=refuse)


@click.command()
@struct_options(pipeline.PipelineOptions, complete=_COMPLETE)
@option_group(*map(_removed_option, OPTIONS))
@click.option(
    "-X", "options", metavar="NAME=VALUE", multiple=True, help="A setting, as described above. Repeatable."
)
@config_option
@click.option(
    "--options",
    "options_file",
    type=FILE,
    metavar="FILE",
    help="Read options from a TOML file, as described above.",
)
@click.option(
    "--print-options", is_flag=True, help="Print these options as an options file, without secrets, and exit."
)
@struct_options(RunOptions)
@click.pass_context
def command(ctx: click.Context, /, *, print_options: bool, **_: Any) -> None:
    """Write topics of CloudEvents to tables, each record exactly once.

    Events are written to OUT/events, in folders by the date of the record. All other records are written to
    OUT/quarantine, unchanged and with the reason. With --table NAME, events are written to the table NAME in
    a catalog, and all other records to NAME_quarantine. --route writes events of some types to other tables
    next to these two tables. To continue after the last record, run the same command again, even if the last
    run was killed. If a topic was deleted and created again, or the checkpoint belongs to another OUT, the
    run ends with exit code 2. In this case, use a new folder for OUT.

    --backfill writes records that are missing in the tables, such as records that an earlier run skipped
    because of --from latest. The backfill ends at the offset where the pipeline continues. With --to delta or
    iceberg, the pipeline may run during the backfill.

    -X accepts the settings of the other commands for connecting to brokers (security.protocol, sasl.username,
    ssl.ca.location …), settings of the Java client as kafka.NAME=VALUE, and settings of Spark as
    spark.NAME=VALUE. NAME@=FILE reads a value from a file. Errors show only values that are known to be
    harmless. If a command prints the tokens (sasl.oauthbearer.token.command), the tokens must be JWTs, and
    Spark must run on this machine.

    --options reads all options of this command from a TOML file, in which the options have their names in
    Python. The table [settings] of the file contains settings. The command line overrides the file.
    --print-options prints these options as such a file.
    """
    chosen = ChosenOptions.of(ctx)
    if print_options:
        require("--print-options", packages("cli"))
        click.echo(chosen.to_toml(), nl=False)
        return
    values = chosen.values(os.environ)
    settings = chosen.settings(values, os.environ)
    topics = values.get("topics") or values.get("topic_pattern")
    settings.check(show=False, topic=topics, out=values.get("out"))
    _require(values)
    with ExitStack() as stack:
        loaded = _with_tokens(settings, values.get("master"), stack)
        options = chosen.pipeline_options(values, loaded)
        interrupts = stack.enter_context(Interrupts())
        _check_folder(options)
        _refuse_unknown_topics(settings, options, interrupts)
        summary_json = values.get("summary_json")
        path = None if summary_json in {None, "-"} else Path(str(summary_json))
        console = Console(loaded, interrupts, path, quiet=values.get("quiet", False))
        summary = _run(options, loaded, console)
    print_summary(summary, summary_json)
    # Ctrl-C is the normal end of a run without --once; with --once, the run is incomplete.
    if (options.once or options.backfill) and not summary.complete:
        interrupts.check()
    interrupts.check(signal.SIGTERM)


def _require(values: dict[str, Any]) -> None:
    tables = [table_format(values["to"])] if values.get("to") in TABLE_FORMATS else []
    for_prometheus = "metrics_port" in values or str(values.get("metrics_file")).endswith(".prom")
    metrics = [packages("metrics")] if for_prometheus else []
    require("pipeline", packages("spark"), java, connector, *tables, *metrics)


def _check_folder(options: pipeline.PipelineOptions) -> None:
    """Raise `BadUsage` if the tables need a file system, but the folder is in an object store.

    This check runs without a broker.
    """
    try:
        check_renames(options)
    except pipeline.WrongStore as error:
        raise BadUsage(str(error)) from error


def _refuse_unknown_topics(
    settings: Settings, options: pipeline.PipelineOptions, interrupts: Interrupts
) -> None:
    """Raise `BadUsage` if a topic does not exist; this check runs before the slow start of Spark.

    All other problems of topics are reported by Spark, because Spark's Kafka client may use other settings.
    If the folder of the pipeline exists, topics are not checked, because the files of earlier runs show more
    about a deleted topic.
    """
    others, java = settings.split("kafka.")
    others = others.split("spark.")[0].split(REGISTRY)[0]
    if java or Path(options.out).exists():
        return
    quiet = others.with_defaults("defaults of pipeline", {})
    try:
        with interrupts.waiting():
            known = ClusterView(BrokerSession(quiet, _ASK_SECONDS, interrupts)).topics()
    except ConnectionsRefused:
        raise
    except (BadUsage, BrokerFailure):
        return
    for topic in options.topics:
        if topic not in known:
            raise BadUsage(
                f"topic {topic} does not exist: check its name, or create it first{near(topic, known)}"
            )


def _with_tokens(settings: Settings, master: str | None, stack: ExitStack) -> Settings:
    """Return settings with which Java fetches tokens from this process, which runs the command for tokens."""
    command = token_command(settings)
    if command is None:
        return settings
    if not (master or settings.effective.get("spark.master") or "local").startswith("local"):
        raise BadUsage(
            f"{TOKEN_COMMAND} needs a Spark on this machine, as executors of a cluster cannot run it; use "
            "sasl.oauthbearer.method=oidc, or the service's login class for Java in kafka.sasl.jaas.config"
        )
    from cloudevents_kafka.clients.oauth import TokenEndpoint, TokenError

    try:
        command.token()
    except TokenError as error:
        raise BrokerFailure(f"there is no login for the brokers: {error}") from None
    endpoint = stack.enter_context(TokenEndpoint(command))
    return settings.without(TOKEN_COMMAND).with_overrides("token endpoint", endpoint.settings)


def _run(options: pipeline.PipelineOptions, settings: Settings, console: Console) -> pipeline.Summary:
    try:
        return console.run(options)
    except _WRONG_USE as error:
        raise BadUsage(str(error)) from error
    except pipeline.ThresholdCrossed as error:
        raise ThresholdEnd(str(error)) from error
    except pipeline.CountMismatch as error:
        raise BadData(str(error)) from error
    except (pipeline.PipelineFailed, pipeline.SparkFailed) as error:
        final = isinstance(error, pipeline.PipelineFailed) and error.final
        raise (BadUsage if final else BrokerFailure)(options.redact(settings.redact(str(error)))) from error
