"""``pipeline``: write topics of events to tables with Spark."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from cloudevents_kafka.cli.data_schemas import REGISTRY, by_pattern, read_schema_options, schema_options
from cloudevents_kafka.cli.kafka.cluster import Cluster
from cloudevents_kafka.cli.kafka.logins import TOKEN_COMMAND, token_command
from cloudevents_kafka.cli.kafka.session import BrokerSession, ConnectionsRefused
from cloudevents_kafka.cli.kafka.settings import Settings, config_option, pop_settings
from cloudevents_kafka.cli.kafka.topic_names import complete_topics
from cloudevents_kafka.cli.needs import connector, java, packages, require, table_format
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerFailure, ThresholdEnd
from cloudevents_kafka.cli.terminal.parameters import FILE, SecondsType
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.streams import Waiting
from cloudevents_kafka.cli.terminal.text import escape_json, escape_lines, near
from cloudevents_kafka.spark import pipeline
from cloudevents_kafka.spark.pipeline.landing import check_renames
from cloudevents_kafka.spark.pipeline.removed import TOPICS, removed_text

# Settings that are passed to Spark's Kafka source, in addition to kafka.… and spark.….
_SOURCE_SETTINGS: Final = (
    *("minPartitions", "groupIdPrefix", "minOffsetsPerTrigger", "maxTriggerDelay"),
    *("kafkaConsumer.", "fetchOffset.", "fetchoffset."),
)

_Command = TypeVar("_Command", bound=Callable[..., Any])
_HEARTBEAT_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 2.0  # the longest wait for brokers before Spark starts

# Another folder, table, checkpoint or topic is needed.
_WRONG_USE: Final = (
    *(pipeline.InUse, pipeline.WrongStore, pipeline.WrongCheckpoint, pipeline.WrongTable),
    pipeline.TopicChanged,
)


class _Kinds(click.Choice):  # type: ignore[type-arg]  # older clicks have no generic one
    """The kinds of tables; the error for topics says what to do instead."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the kind."""
        if value == "kafka":
            raise BadUsage(f"--to must be parquet, delta or iceberg, got kafka. {TOPICS}")
        return super().convert(value, param, ctx)


def _removed_option(name: str) -> Callable[[_Command], _Command]:
    """Return a hidden option whose error says what to do instead."""
    option = f"--{name.replace('_', '-')}"

    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:  # noqa: ARG001
        if value is not None:
            raise BadUsage(removed_text(name, option))

    return click.option(option, hidden=True, expose_value=False, is_eager=True, callback=refuse)


@click.command()
@click.option("-b", "--brokers", metavar="HOST:PORT,…", help="The brokers (bootstrap.servers).")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    shell_complete=complete_topics,
    help="A topic to read. Repeatable.",
)
@click.option(
    "--topic-pattern", metavar="REGEX", help="Read all topics whose names match, also those that come later."
)
@click.option(
    "-o",
    "--out",
    metavar="DIR",
    help="The folder of tables, notes and checkpoint: a path, or a URL for Spark.",
)
@click.option(
    "--to",
    type=_Kinds(["parquet", "delta", "iceberg"]),
    default="parquet",
    show_default=True,
    help="The kind of the tables.",
)
@click.option(
    "--table",
    metavar="NAME",
    help="The table of the events, CATALOG.SCHEMA.NAME, with --to delta or iceberg "
    "[default: the folder OUT/events]",
)
@click.option(
    "--route",
    "routes",
    multiple=True,
    metavar="TYPES=TABLE",
    help="The table of the types that match, such as 'com.example.order.*=orders'. "
    "The first that matches decides. Repeatable.",
)
@schema_options
@_removed_option("mode")
@click.option(
    "--deduplicate",
    metavar="SPAN",
    help="Do not land events whose source and id a row has, with a timestamp so near: 1h, 7d.",
)
@click.option(
    "--upsert",
    multiple=True,
    metavar="KEY",
    help="Have one row for each key: key (that of Kafka), subject, an extension …. Repeatable.",
)
@click.option(
    "--deleted",
    metavar="ATTRIBUTE=VALUE",
    help="Events that delete, such as iodebeziumop=d, next to records without a value, with --upsert.",
)
@click.option(
    "--checkpoint", metavar="DIR", help="The folder of Spark's checkpoint.  [default: OUT/_checkpoint]"
)
@click.option("--once", is_flag=True, help="Stop at the current end of the topics, not at Ctrl-C.")
@click.option(
    "--interval",
    type=SecondsType(allow_zero=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="The time from one batch to the next.",
)
@click.option(
    "--from",
    "start",
    default="earliest",
    show_default=True,
    help='The start of a first run: earliest, latest, or offsets as {"topic": {"0": 17}}.',
)
@click.option(
    "--max-records",
    type=click.IntRange(min=1),
    default=200_000,
    show_default=True,
    metavar="N",
    help="The largest number of records in a batch.",
)
@click.option(
    "--lenient", is_flag=True, help="Accept deviations of known producers; the column tolerated has them."
)
@click.option("--allow-data-loss", is_flag=True, help="Continue if records expired before they were read.")
@click.option(
    "--forget-topic",
    "forget_topics",
    multiple=True,
    metavar="NAME",
    help="Go on without a topic of earlier runs, such as one that was deleted. Repeatable.",
)
@click.option(
    "--backfill",
    metavar="FROM..TO",
    help="Read what no pipeline has landed of a range, and end. FROM and TO, which is not read, are "
    "earliest, latest, N (an offset), or @2026-11-21T12:00:00Z.",
)
@click.option(
    "--metrics-file",
    type=FILE,
    metavar="FILE",
    help="Write the figures of each batch: as JSON lines, or for Prometheus if it ends in .prom.",
)
@click.option(
    "--metrics-port",
    metavar="PORT",
    help="Serve the figures to Prometheus: PORT, 0 for any, or HOST:PORT.  [default host: 127.0.0.1]",
)
@click.option("--group", metavar="NAME", help="Commit what has landed to this group, to show the lag.")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="LIMIT[:ACTION]",
    help="Warn, end, or stop a topic above a limit, such as 'quarantine>5%/10m:stop', 'lag>5m:end' or "
    "'lag>100000:warn'. Repeatable.",
)
@click.option("--adopt", is_flag=True, help="Land next to the rows of a table that no pipeline has filled.")
@_removed_option("date_of")
@click.option(
    "--summary-json",
    type=FILE,
    metavar="FILE",
    help="Write the summary as JSON to a file, again after each batch; - for stdout, at the end.",
)
@click.option("--master", help="The Spark master.  [default: local[*]]")
@click.option("--ui", is_flag=True, help="Serve Spark's web UI during the run.")
@click.option("--spark-log", "log", type=FILE, metavar="FILE", help="Write Spark's warnings to a file.")
@click.option("-X", "options", metavar="NAME=VALUE", multiple=True, help="A setting, see above. Repeatable.")
@config_option
@click.option("-q", "--quiet", is_flag=True, help="Print no line for each batch, and none in each minute.")
def command(summary_json: str | None, *, quiet: bool, **options: Any) -> None:
    """Write topics of CloudEvents to tables, each record exactly once.

    OUT/events has the events, in folders by the date of the record; OUT/quarantine has the
    other records, unchanged and with the reason. With --table these are a table of a catalog
    and NAME_quarantine. --route puts events of some types into tables of their own, which are
    next to these. Run the command again to continue after the last record, however the last
    run ended. If a topic was deleted and created again, or the checkpoint belongs to another
    OUT, the run ends with exit code 2: use a new OUT then.

    --backfill fills gaps, such as what was before --from latest, up to where the pipeline of
    OUT goes on. The pipeline may run meanwhile with --to delta or iceberg.

    -X accepts the settings of the other commands for connecting to brokers
    (security.protocol, sasl.username, ssl.ca.location …), settings of the Java client as
    kafka.NAME=VALUE, and of Spark as spark.NAME=VALUE; NAME@=FILE reads a value from a
    file. Errors show only values known to be harmless. Tokens of a command
    (sasl.oauthbearer.token.command) must be JWTs, and need a Spark on this machine.
    """
    settings = pop_settings(options)
    topics = options["topics"] or options["topic_pattern"]
    settings.check(show=False, topic=topics, out=options["out"])
    tables = [table_format(options["to"])] if options["to"] in ("delta", "iceberg") else []
    for_prometheus = options["metrics_port"] is not None or str(options["metrics_file"]).endswith(".prom")
    metrics = [packages("metrics")] if for_prometheus else []
    require("pipeline", packages("spark"), java, connector, *tables, *metrics)
    with ExitStack() as stack:
        loaded = _with_tokens(settings, options["master"], stack)
        pipeline_options = _pipeline_options(loaded, options)
        interrupts = stack.enter_context(Interrupts())
        _check_folder(pipeline_options)
        _refuse_unknown_topics(settings, pipeline_options, interrupts)
        path = None if summary_json in {None, "-"} else Path(str(summary_json))
        console = _Console(loaded, interrupts, path, quiet=quiet)
        summary = _run(pipeline_options, loaded, console)
    _print_summary(summary, summary_json)
    # Ctrl-C is the normal end of a run without --once; with --once, the run is incomplete.
    if (pipeline_options.once or pipeline_options.backfill) and not summary.complete:
        interrupts.check()
    interrupts.check(signal.SIGTERM)


def _check_folder(options: pipeline.PipelineOptions) -> None:
    """Raise `BadUsage` for a folder that does not suit the tables, even if no broker answers."""
    try:
        check_renames(options)
    except pipeline.WrongStore as error:
        raise BadUsage(str(error)) from error


def _refuse_unknown_topics(
    settings: Settings, options: pipeline.PipelineOptions, interrupts: Interrupts
) -> None:
    """Raise `BadUsage` for a topic that does not exist, before Spark starts, which takes long.

    Other problems are left to Spark, whose client may have other settings; so are folders of earlier runs,
    whose notes say more about a topic that was deleted.
    """
    others, java = settings.split("kafka.")
    others = others.split("spark.")[0].split(REGISTRY)[0]
    if java or Path(options.out).exists():
        return
    quiet = others.with_defaults("defaults of pipeline", {})
    try:
        with interrupts.waiting():
            known = Cluster(BrokerSession(quiet, _ASK_SECONDS, interrupts)).topics()
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
    """Return settings in which Java fetches the tokens of a command from an endpoint of this process."""
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


def _pipeline_options(settings: Settings, options: dict[str, Any]) -> pipeline.PipelineOptions:
    effective = settings.split(REGISTRY)[0].effective
    spark = {name: value for name, value in effective.items() if name.startswith("spark.")}
    source = {
        name: value for name, value in effective.items() if name.startswith(("kafka.", *_SOURCE_SETTINGS))
    }
    rest = {name: value for name, value in effective.items() if name not in spark and name not in source}
    try:
        kafka = {**pipeline.to_java_settings(rest), **source}
        tables = by_pattern("--route", "TABLE", "orders", options.pop("routes"))
        schemas = read_schema_options(options, settings.effective)
        thresholds = tuple(map(pipeline.Threshold.parse, options.pop("thresholds")))
        return pipeline.PipelineOptions(
            bootstrap_servers=settings.bootstrap_servers,
            kafka_options=kafka,
            conf=spark,
            tables=tables,
            thresholds=thresholds,
            **schemas,
            **options,
        )
    except ValueError as error:
        raise BadUsage(settings.redact(str(error))) from None


class _Console:
    """What a run prints on stderr: a line for each batch and warning, and one in each quiet minute."""

    def __init__(self, settings: Settings, interrupts: Interrupts, path: Path | None, *, quiet: bool) -> None:
        self._settings, self._interrupts, self._path, self._quiet = settings, interrupts, path, quiet
        self._announced = False
        self._waiting = Waiting(self._wait_text, enabled=not quiet)
        self._has_started = False
        self._last_line = time.monotonic()
        self._running: pipeline.EventPipeline | None = None

    def run(self, options: pipeline.PipelineOptions) -> pipeline.Summary:
        self._running = pipeline.EventPipeline(options, report=self._report, warn=self._warn)
        self._print("starting Spark, which takes some seconds")
        with self._waiting:
            if options.metrics_port is not None:
                url = self._running.start().metrics_url
                self._waiting.erase()
                click.echo(f"metrics: {url}", err=True)
            return self._running.run(stop=self._stop)

    def _wait_text(self) -> str:
        return "waiting for the first batch" if self._has_started else "starting Spark"

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        self._waiting.erase()
        if not self._quiet:
            click.echo(f"{datetime.now(UTC):%H:%M:%SZ} {text}", err=True)

    def _report(self, batch: pipeline.BatchProgress) -> None:
        self._waiting.clear()
        self._print(str(batch))
        if self._path is not None and self._running is not None:
            _write_summary(self._running.summary(), self._path)

    def _stop(self) -> bool:
        """Return whether to stop; print a line if there was none for a minute."""
        self._has_started = True
        if self._interrupts.requested and not self._announced:
            self._waiting.clear()
            self._announced = True
            click.echo("stopping after this batch; press Ctrl-C again to stop at once", err=True)
        elif self._running is not None and time.monotonic() > self._last_line + _HEARTBEAT_SECONDS:
            self._print(escape_lines(self._running.status()))
        return self._interrupts.requested

    def _warn(self, text: str) -> None:
        self._waiting.erase()
        click.echo(f"warning: {escape_lines(self._settings.redact(text))}", err=True)


def _run(options: pipeline.PipelineOptions, settings: Settings, console: _Console) -> pipeline.Summary:
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


def _write_summary(summary: pipeline.Summary, path: Path) -> None:
    """Write a summary in one step, so that a reader sees a whole one."""
    if not path.exists() or path.is_file():
        draft = path.with_name(f"{path.name}.part")
        draft.write_text(summary.to_json() + "\n", encoding="utf-8")
        draft.replace(path)
    else:  # a pipe or a device, such as /dev/stdout
        path.write_text(summary.to_json() + "\n", encoding="utf-8")


def _print_summary(summary: pipeline.Summary, summary_json: str | None) -> None:
    if summary_json == "-":
        print(escape_json(summary.to_json()))
        return
    print(summary.to_text())
    if summary_json is not None:
        _write_summary(summary, Path(summary_json))
