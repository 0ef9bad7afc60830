"""Which table the events of a type go to: rules of the option, and Spark's choice compared with Python's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudevents_kafka.spark.pipeline import PipelineOptions
from cloudevents_kafka.spark.pipeline.notes import table_for
from cloudevents_kafka.spark.pipeline.notes._routes import MAX_ROUTES
from tests.support.cases import each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOOD: dict[str, Any] = {"bootstrap_servers": "b:1", "topics": ("read",), "out": "o"}
PAID = "com.example.order.paid"


@each(
    ("options", "words"),
    [
        ({"tables": {"": "orders"}}, "a pattern in tables must be a type"),
        ({"tables": {f"t{n}": "x" for n in range(MAX_ROUTES + 1)}}, "at most 50 patterns, got 51"),
        *[
            ({"tables": {PAID: name}}, "must be at most 100 ASCII letters")
            for name in (
                "",
                "..",
                "a/b",
                "a\\b",
                "a.b",
                "_batches",
                "_staging",
                "_lock",
                ".x",
                "a b",
                "ä",
                "a=1",
            )
        ],
        ({"tables": {PAID: "x" * 101}}, "at most 100"),
        ({"tables": {PAID: "events"}}, "even if case is ignored, got 'events' next to 'events'"),
        ({"tables": {PAID: "Quarantine"}}, "got 'Quarantine' next to 'quarantine'"),
        ({"tables": {"a": "orders", "b": "Orders"}}, "got 'Orders' next to 'orders'"),
        ({"tables": {PAID: "all"}, "to": "delta", "table": "c.s.`all`"}, "got 'all' next to 'all'"),
        (
            {"tables": {PAID: "all_quarantine"}, "to": "iceberg", "table": "c.s.all"},
            "next to 'all_quarantine'",
        ),
        ({"to": "files"}, "to must be parquet, delta or iceberg, got 'files'"),
    ],
)
def test_wrong_tables(options: dict[str, Any], words: str) -> None:
    """Names that cannot be those of tables of their own, and patterns without use, are refused."""
    with pytest.raises(ValueError, match=re.escape(words)):
        PipelineOptions(**{**GOOD, **options})


def test_good_tables() -> None:
    """Several patterns may have one table."""
    PipelineOptions(**GOOD, tables={"com.a.*": "orders", "com.b.*": "orders", "*": "rest-1"})
    PipelineOptions(**GOOD, tables={f"t{n}": f"x{n}" for n in range(MAX_ROUTES)})


def choose(type_: str, routes: dict[str, str]) -> str:
    """Return the table of a type, by Python's regular expressions."""
    for pattern, table in routes.items():
        if re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), type_, re.DOTALL):
            return table
    return "events"


PIECES = st.sampled_from(
    ["a", "b", "aa", "ab", ".", "+", "(", "\\", "\\E", "%", "_", "^", "$", "é", "🎂", "\n"]
)
TEXTS = st.lists(PIECES, max_size=6).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
PATTERNS = st.lists(PIECES | st.just("*") | st.just("*"), min_size=1, max_size=6).map("".join)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@settings(max_examples=4, deadline=None)
@given(
    patterns=st.lists(PATTERNS, min_size=1, max_size=8, unique=True),
    types=st.lists(TEXTS, min_size=20, max_size=60),
)
def test_spark_chooses_as_python(session: SparkSession, patterns: list[str], types: list[str]) -> None:
    """The first pattern that matches decides, for any types and patterns, also where Python chooses."""
    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark.pipeline.tables import table_of

    routes = {pattern: f"table{number}" for number, pattern in enumerate(patterns)}
    types = [*types, *patterns, "a" * 20_000]
    frame = session.createDataFrame([(type_,) for type_ in types], "type string")
    rows = frame.select("type", F.expr(table_of("type", routes)).alias("table")).collect()
    assert [(row["type"], row["table"]) for row in rows] == [
        (type_, choose(type_, routes)) for type_ in types
    ]
    assert [table_for(type_, routes) for type_ in types] == [choose(type_, routes) for type_ in types]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_time_of_a_pattern(session: SparkSession) -> None:
    """A type of any length cannot make a pattern with many stars slow."""
    import time

    from pyspark.sql import functions as F  # noqa: N812

    from cloudevents_kafka.spark.pipeline.tables import table_of

    frame = session.createDataFrame([("a" * 100_000 + "b",)], "type string")
    start = time.monotonic()
    assert frame.select(F.expr(table_of("type", {"*a" * 12 + "*c": "x"}))).head()[0] == "events"
    assert time.monotonic() - start < 20
