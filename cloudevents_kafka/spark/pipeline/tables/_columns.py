"""The columns of a pipeline's tables; the last column, `RECORD_DATE`, contains the date of the record.

If a pipeline has several tables of events, rows also have the column `TABLE` until the rows are written. The
column `TABLE` contains the name of the table to which the row belongs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark._patterns import literal, matches_sql
from cloudevents_kafka.spark.pipeline.notes import DELETED, EVENTS, TABLE, OffsetRanges, iter_partitions
from cloudevents_kafka.spark.pipeline.tables._places import partition_sql
from cloudevents_kafka.spark.typed.shape import VALUE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORD_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key")
KAFKA_COLUMNS: Final = (*RECORD_COLUMNS, "value", "headers")
EVENT_COLUMNS: Final = (
    *("id", "source", "type", "specversion", "subject", "time", "time_text"),
    *("datacontenttype", "dataschema", "extensions", "extension_types", "data", "data_kind", "mode"),
)
TOLERATED: Final = "tolerated"  # the column that contains accepted deviations, after lenient reading

RECORD_DATE: Final = "record_date"
ADDED_COLUMNS: Final = (TOLERATED, VALUE)
"""Columns of events. If an existing table does not have one of these columns, a pipeline adds the column."""
OWN_COLUMNS: Final = frozenset(
    (*EVENT_COLUMNS, *RECORD_COLUMNS, "headers", *ADDED_COLUMNS, DELETED, RECORD_DATE)
)
"""All columns that a pipeline writes to tables of events; other columns belong to other writers."""
# Finds the rule in a reason such as "broken CloudEvent: time: must be …, got '…' (T-12, core: …)". The rule
# does not include the value, because otherwise each bad record could have a different rule.
_RULE: Final = (
    r"(?s)^(?:broken CloudEvent: |not a CloudEvent: )?(.+?)(?:, got |, but | \([A-Z]-[0-9]|$|(?<=.{120}))"
)


def record_date() -> str:
    """Return SQL for the UTC date of a record, in the years 1970 to 9999.

    Readers of tables do not accept years outside 1970 to 9999. So an earlier date is replaced by the first
    day of 1970, and a later date is replaced by the last day of 9999. A record may have no timestamp, or a
    timestamp in another unit than milliseconds, because Kafka does not check timestamps. The date does not
    depend on the time zone of the Spark session.
    """
    date = "date_from_unix_date(CAST(floor(unix_seconds(`timestamp`) / 86400) AS INT))"
    return f"least(greatest({date}, DATE'1970-01-01'), DATE'9999-12-31') AS `{RECORD_DATE}`"


def filter_offsets(records: DataFrame, offsets: OffsetRanges) -> DataFrame:
    """Return the records with these offsets."""
    known: dict[str, dict[str, tuple[int, int]]] = {}
    for topic, partition, range_ in iter_partitions(offsets):
        known.setdefault(topic, {})[partition] = (range_.start, range_.end)
    found = partition_sql(known)
    return records.where(f"`offset` >= {found}[0] AND `offset` < {found}[1]")


def table_of(type_: str, routes: Mapping[str, str]) -> str:
    """Return SQL for the name of an event's table: the table of the first pattern that matches its type."""
    cases = (f"WHEN {matches_sql(type_, pattern)} THEN {literal(table)}" for pattern, table in routes.items())
    return f"CASE {' '.join(cases)} ELSE {literal(EVENTS)} END"


def event_columns(
    event: str,
    *,
    lenient: bool = False,
    routes: Mapping[str, str] | None = None,
    by_java: bool = False,
    typed: Mapping[str, str] | None = None,
) -> list[str]:
    """Return SQL for the columns of events; the last column is the date of the record.

    The SQL is valid for rows that have all columns of Kafka and all columns of events. ``event`` is the
    prefix of the names of event columns in the SQL, such as ``read.``. Headers that are part of the event are
    not in the column of the record's headers. If ``lenient`` is true, the column `TOLERATED` follows the
    columns of the event and of the record. If ``routes`` is not empty, the first column is `TABLE`.
    ``by_java`` says whether the Spark session has the Java functions of this package. ``typed`` contains SQL
    for typed columns, such as the column of the data's values. A typed column replaces the column with the
    same name. If no column has the name of the typed column, the typed column follows the other columns.
    """
    from cloudevents_kafka.spark.java.reader import foreign_sql

    names = (*EVENT_COLUMNS, *([TOLERATED] if lenient else []))
    of_event = {name: f"{event}`{name}`" for name in names}
    columns = {TABLE: table_of(of_event["type"], routes)} if routes else {}
    columns |= {name: of_event[name] for name in EVENT_COLUMNS}
    columns |= {name: f"`{name}`" for name in RECORD_COLUMNS}
    columns["headers"] = (foreign_sql if by_java else _foreign)("`headers`")
    columns |= {name: of_event[name] for name in names[len(EVENT_COLUMNS) :]}
    columns |= typed or {}
    return [*(f"{value} AS `{name}`" for name, value in columns.items()), record_date()]


def _foreign(headers: str) -> str:
    """Return SQL for the headers that are not part of an event, or for null without such headers."""
    is_event = "startswith(header.key, 'ce_') OR header.key = 'content-type'"
    found = f"filter({headers}, header -> NOT ({is_event}))"
    return f"CASE WHEN size({found}) > 0 THEN {found} END"


def select_quarantine(records: DataFrame) -> DataFrame:
    """Return the columns of the quarantine: the unchanged columns of each record, and its error."""
    columns = ("error", *RECORD_COLUMNS, "value", "headers")
    return records.selectExpr(*(f"`{name}`" for name in columns), record_date())


def error_rule() -> str:
    """Return SQL for the rule and the clause in the column ``error``, without the invalid value."""
    rule = f"regexp_extract(error.reason, {literal(_RULE)}, 1)"
    return f"concat_ws(' ', {rule}, concat('[', error.clause, ']'))"


def rule_of_error(error: Mapping[str, str | None]) -> str:
    """Return the rule and the clause of one error, as the same text that the SQL of `error_rule` computes."""
    found = re.search(_RULE, error["reason"] or "")
    rule, clause = found[1] if found else "", error["clause"]
    return rule if clause is None else f"{rule} [{clause}]"
