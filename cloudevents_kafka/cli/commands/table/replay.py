"""``table replay``: read quarantined records again, and write the records that are now events to tables."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from cloudevents_kafka.cli.commands.table._options import in_words
from cloudevents_kafka.cli.data_schemas import REGISTRY, registry_settings
from cloudevents_kafka.cli.kafka.settings import load_settings
from cloudevents_kafka.cli.needs import java, packages, require, table_format
from cloudevents_kafka.cli.records.selection import ERRORS
from cloudevents_kafka.cli.terminal.completion import complete_folders, complete_from
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.options import passed_options, struct_options, struct_values
from cloudevents_kafka.cli.terminal.text import escape_json, escape_lines
from cloudevents_kafka.primitives.clauses import sections
from cloudevents_kafka.primitives.options import fields_of
from cloudevents_kafka.spark.pipeline import ReplayOptions

if TYPE_CHECKING:
    from cloudevents_kafka.spark.udf import Mend

_mend: Final = click.option(
    "--mend", metavar="MODULE:FUNCTION", help="A Python function that returns a changed Record, or None."
)
_json: Final = click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")


@click.command()
@struct_options(
    ReplayOptions,
    after={"lenient": _mend, "apply": _json},
    complete={
        "out": complete_folders,
        "verdicts": complete_from(lambda: ERRORS),
        "clauses": complete_from(sections),
    },
    required=True,
)
@click.option("-X", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of Spark. Repeatable.")
@click.pass_context
def command(
    ctx: click.Context, /, out: str, mend: str | None, settings: tuple[str, ...], *, as_json: bool, **_: Any
) -> None:
    """Read records of the quarantine again, and write each record that is now an event to its table.

    A record is chosen if it matches all options from --verdict to --where. The option --mend names a function
    that may change the record. This version of the library then reads the changed record. If the function
    returns None, the record stays in the quarantine. The module of the function may be in the working
    directory. Data is decoded with the schemas that --schema names. By default, the schemas of the pipeline's
    last batch are used.

    Without --apply, the command only counts, by verdict and reason, the records that would be written to
    tables. With --apply, each event is written once to its table, with the topic, partition, offset and
    timestamp of the record. The table OUT/quarantine_replays contains the outcome of each record. The next
    replay skips the records that an earlier replay has written to tables, and tries all other records again.
    If the command was killed, run it again: it first finishes the replay that was interrupted.

    A pipeline for Delta or Iceberg may run at the same time as this command, but a pipeline for Parquet may
    not.
    """
    require("table", packages("spark"), java)
    from cloudevents_kafka.spark.pipeline import replay_quarantine
    from cloudevents_kafka.spark.pipeline.replays import replayed_kind
    from cloudevents_kafka.spark.table_formats import TABLE_FORMATS

    registry = tuple(setting for setting in settings if setting.startswith(REGISTRY))
    with in_words(tuple(setting for setting in settings if setting not in registry)) as conf:
        kind = replayed_kind(out)
        require("table", *([table_format(kind)] if kind in TABLE_FORMATS else []))
        function = None if mend is None else _load(mend)
        fields = fields_of(ReplayOptions)
        values = struct_values(fields, passed_options(ctx, fields))
        client = load_settings(None, {}, registry, None).effective
        values["schema_registry"] = registry_settings(values.get("schema_registry"), client)
        summary = replay_quarantine(ReplayOptions(conf=conf, **values), mend=function)
    print(escape_json(summary.to_json()) if as_json else escape_lines(summary.to_text()))


def _load(name: str) -> Mend:
    """Return the function of Python that the text ``MODULE:FUNCTION`` names."""
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise BadUsage(f"--mend must be MODULE:FUNCTION, such as fixes:mend, got {name!r}")
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise BadUsage(f"--mend must name a function that can be imported, got {name!r}: {error}") from error
    if not callable(found):
        raise BadUsage(f"--mend must name a function, got {name!r}, which is not callable")
    loaded: Mend = found
    return loaded
