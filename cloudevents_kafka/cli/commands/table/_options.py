"""The options of the ``table`` commands, and the errors of these commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from cloudevents_kafka.cli.kafka.settings import load_settings
from cloudevents_kafka.cli.needs import Check, java, packages, require, table_format
from cloudevents_kafka.cli.terminal.completion import complete_folders
from cloudevents_kafka.cli.terminal.errors import BadData, BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.parameters import option_group

if TYPE_CHECKING:
    from cloudevents_kafka.spark.pipeline.maintenance import Maintenance

table_options = option_group(
    click.option(
        "-o",
        "--out",
        "folder",
        metavar="DIR",
        help="The folder of a pipeline, or of one table: a path, or a URL for Spark.",
        shell_complete=complete_folders,
    ),
    click.option(
        "--table",
        "names",
        metavar="CATALOG.SCHEMA.NAME",
        multiple=True,
        help="A table of a catalog. Repeatable.",
    ),
    click.option("--master", help="The Spark master.  [default: local[*]]"),
    click.option(
        "-X",
        "options",
        metavar="NAME=VALUE",
        multiple=True,
        help="A setting of Spark, such as a setting of a catalog. Repeatable.",
    ),
)


def maintain(action: Callable[..., Iterator[Maintenance]], options: dict[str, Any]) -> None:
    """Run an action on the tables that the options of the command name, and print a line for each table."""
    require("table", packages("spark"), java, *_formats(options))
    if options["folder"] is None and not options["names"]:
        raise BadUsage("a table is missing: pass --out DIR or --table CATALOG.SCHEMA.NAME")
    with in_words(options.pop("options")) as conf:
        for done in action(conf=conf, **options):
            click.echo(str(done))


@contextmanager
def in_words(options: tuple[str, ...]) -> Iterator[Mapping[str, str]]:
    """Return a context manager that yields Spark settings from ``-X`` and converts errors to exit codes."""
    from cloudevents_kafka.spark import pipeline
    from cloudevents_kafka.spark.table_formats import NoTableFormat

    settings = load_settings(None, {}, options, None)
    conf = settings.effective
    if other := sorted(name for name in conf if not name.startswith("spark.")):
        raise BadUsage(f"-X must be a setting of Spark, spark.NAME=VALUE, got {other[0]}")
    try:
        yield conf
    except (
        pipeline.WrongTable,
        pipeline.WrongCheckpoint,
        pipeline.InUse,
        NoTableFormat,
        ValueError,
    ) as error:
        raise BadUsage(settings.redact(str(error))) from error
    except (pipeline.CountMismatch, pipeline.FolderFailed) as error:
        raise BadData(settings.redact(str(error))) from error
    except (pipeline.PipelineFailed, pipeline.SparkFailed) as error:
        raise BrokerFailure(settings.redact(str(error))) from error


def _formats(options: dict[str, Any]) -> Iterator[Check]:
    """Yield the check for each table format that the chosen tables have.

    A wrong folder is ignored here, because the action of the command reports it later.
    """
    from cloudevents_kafka.spark.pipeline import WrongTable
    from cloudevents_kafka.spark.pipeline.maintenance import needed_formats

    with suppress(WrongTable):
        yield from map(table_format, needed_formats(options["folder"], options["names"]))
