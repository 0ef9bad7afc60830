"""`ReplayOptions` says which records of the quarantine a replay reads, and how it reads these records."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.primitives.epoch import EPOCH, MICROSECOND
from cloudevents_kafka.primitives.options import Option, check_fields, must_be
from cloudevents_kafka.spark._patterns import literal, matches_sql
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline._errors import failure_of
from cloudevents_kafka.spark.pipeline.options import Rescue, SchemaRegistry, Schemas
from cloudevents_kafka.spark.typed.schemas import read_schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE: Final = ("topic", "partition", "offset", "timestamp")
"""The columns that identify a record. The timestamp is one of these columns, because offsets repeat in a
topic that was created again."""

# SQL for the type of an event: from the header in binary mode, from the value in structured mode.
_TYPE: Final = (
    "coalesce(CAST(get(filter(headers, header -> lower(header.key) = 'ce_type'), 0).value AS STRING), "
    "get_json_object(CAST(`value` AS STRING), '$.type'))"
)


_check_time: Final = must_be("a time such as 2026-11-21T12:00:00Z", is_timestamp)


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `replay_quarantine`; raises `ValueError` for invalid options.

    ``out`` is the folder of the pipeline. ``table`` is the table of events, if this table is in a catalog.
    The options ``verdicts``, ``clauses``, ``reasons``, ``types``, ``since``, ``until`` and ``where`` choose
    records. ``verdicts`` and ``clauses`` are values in the quarantine's column ``error``, and ``reasons`` are
    texts that the reason in this column contains. ``types`` are types of events, in which ``*`` stands for
    any text. ``since`` and ``until`` are times in RFC 3339; the timestamp of the record must not be before
    ``since``, and must be before ``until``. ``where`` is a condition in SQL on the columns of the quarantine.
    A record is chosen only if it matches all of these options that are set. If the value of an option is a
    list, the record must match one item of the list.

    If ``lenient`` is true, records are read leniently; if ``lenient`` is false, records are read strictly.
    The data of events is read with ``schemas`` and ``rescue``, which mean the same as in `PipelineOptions`.
    Without ``schemas``, the schemas of the pipeline's last batch are used. To read data that serializers of a
    schema registry have written, set ``schema_registry``. If ``apply`` is true, events land; if ``apply`` is
    false, events are only counted, and no table changes. ``master`` and ``conf`` are settings of the Spark
    session that the replay starts.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import ReplayOptions
        >>> ReplayOptions(out="lake/orders", verdicts=("broken-event",), since="2026-11-21T12:00:00Z").apply
        False
    """

    out: Annotated[str, Option("The folder of the pipeline.", flags="-o --out", metavar="DIR")]
    table: Annotated[
        str | None,
        Option("The table of the events, if it is in a catalog.", metavar="CATALOG.SCHEMA.NAME"),
    ] = None
    verdicts: Annotated[
        Collection[str], Option("Only records with this verdict.", flags="--verdict", metavar="VERDICT")
    ] = ()
    clauses: Annotated[
        Collection[str], Option("Only records that break this clause.", flags="--clause", metavar="ID")
    ] = ()
    reasons: Annotated[
        Collection[str],
        Option("Only records with this text in the reason.", flags="--reason", metavar="TEXT"),
    ] = ()
    types: Annotated[
        Collection[str],
        Option("Only records of these types, such as 'com.example.*'.", flags="--type", metavar="TYPES"),
    ] = ()
    since: Annotated[
        str | None,
        Option("Only records from this time on, by their timestamps.", metavar="TIME", check=_check_time),
    ] = None
    until: Annotated[
        str | None, Option("Only records before this time.", metavar="TIME", check=_check_time)
    ] = None
    where: Annotated[
        str | None,
        Option("Only rows of the quarantine for which this condition is true.", metavar="SQL"),
    ] = None
    lenient: Annotated[bool, Option("Accept deviations of known producers.")] = False
    schemas: Schemas = {}
    rescue: Rescue = False
    schema_registry: SchemaRegistry = None
    apply: Annotated[bool, Option("Land the events. Without --apply, only count what would land.")] = False
    master: Annotated[str | None, Option("The Spark master.  [default: local[*]]")] = None
    conf: Annotated[Mapping[str, str], Option(of_settings=True)] = {}

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rescue and not self.schemas:
            raise ValueError("rescue must be False without schemas: the pipeline's rescue is used")
        msgspec.structs.force_setattr(self, "schemas", read_schemas(self.schemas))

    def _conditions(self) -> Iterator[str]:
        yield _any(f"error.verdict = {literal(verdict)}" for verdict in self.verdicts)
        # The column contains only the first clause; the reason contains all clauses.
        patterns = {clause: literal(rf"\({re.escape(clause)}[,)]") for clause in self.clauses}
        yield _any(f"error.clause = {literal(c)} OR error.reason RLIKE {p}" for c, p in patterns.items())
        yield _any(f"contains(error.reason, {literal(reason)})" for reason in self.reasons)
        yield _any(matches_sql(_TYPE, pattern) for pattern in self.types)
        for operator, time in ((">=", self.since), ("<", self.until)):
            if time is not None:
                micros = (to_datetime(time) - EPOCH) // MICROSECOND
                yield f"`timestamp` {operator} timestamp_micros({micros})"

    def choose(self, quarantine: DataFrame) -> DataFrame:
        """Return the rows of the quarantine that the options choose.

        Raises `ValueError` if ``where`` is not an SQL condition on the columns of the quarantine.
        """
        from pyspark.errors import AnalysisException

        for condition in filter(None, self._conditions()):
            quarantine = quarantine.where(condition)
        try:
            return quarantine if self.where is None else quarantine.where(f"({self.where}\n)")
        except AnalysisException as error:
            names = ", ".join(quarantine.columns)
            raise ValueError(
                f"where must be a condition of SQL on the columns {names}, got {self.where!r}: "
                f"{failure_of(str(error))}"
            ) from error


def _any(conditions: Iterator[str]) -> str:
    return " OR ".join(f"({condition})" for condition in conditions)


def has_landed(ledger: notes.Ledger) -> str:
    """Return SQL that is true if the batch that wrote a row of the quarantine has landed.

    If the batch that wrote a row has landed, ``ledger`` contains the offset of the row. If a writer other
    than a pipeline has added the row, ``ledger`` does not contain the offset of the row.
    """
    ranges = (
        f"(`topic` = {literal(entry.topic)} AND `partition` = {entry.partition} "
        f"AND `offset` >= {entry.offsets.start} AND `offset` < {entry.offsets.end})"
        for entry in sorted(ledger.entries(), key=attrgetter("topic"))
        if entry.topic != notes.REPLAYS
    )
    return " OR ".join(ranges) or "false"


def without(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Return the rows for which ``others`` has no row with equal values in the columns of `PLACE`.

    Two null timestamps count as equal values.
    """
    from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

    places = others.select(*(F.col(name).alias(f"other_{name}") for name in PLACE))
    same = [F.col(name).eqNullSafe(F.col(f"other_{name}")) for name in PLACE]
    return rows.join(places, same, "left_anti")
