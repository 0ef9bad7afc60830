"""No setting of a session changes events: the rows, types and records are the same under each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.record import Record
from tests.support.strategies import scaled

from .events import written
from .records import changed, edges, vectors
from .rows import expected, read_back, rows_of
from .settings import SAMPLE, SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS: list[dict[str, Any]] = [{}, {"mode": "structured"}]


class Corpus:
    """Records in Parquet, with the expected results of decoding and encoding them."""

    def __init__(self, spark: SparkSession, records: list[Record], folder: Path) -> None:
        self.folder = str(folder)
        frame = rows_of(spark, records)
        self.schema = frame.schema
        frame.repartition(2).write.parquet(self.folder)
        self.read = {n: expected(record) for n, record in enumerate(records)}
        self.written = [{n: written(record, **way) for n, record in enumerate(records)} for way in WAYS]

    def rows(self, session: SparkSession) -> DataFrame:
        return session.read.schema(self.schema).parquet(self.folder)


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(spark, list(vectors()), tmp_path_factory.mktemp("small") / "records")


@pytest.fixture(scope="module")
def large(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    records = [*vectors(), *edges(), *changed(scaled(1500))]
    return Corpus(spark, records, tmp_path_factory.mktemp("large") / "records")


@pytest.fixture
def session(spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """Create a session with the settings of a name."""
    made = spark.newSession()
    for name, value in SETTINGS[request.param].items():
        made.conf.set(name, value)
    return made


@pytest.fixture(autouse=True)
def no_warning(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that no session has lost the Java function."""
    yield
    assert "in Python workers" not in "".join(record.message for record in caplog.get_records("call"))


def check(session: SparkSession, corpus: Corpus) -> None:
    """Decode the corpus and encode the events; compare both with the library, row by row."""
    from cloudevents_kafka.spark import decode_events, encode_events, event_schema

    rows = corpus.rows(session)
    decoded = decode_events(rows, keep=["offset", "partition"])
    event = event_schema()
    assert [(f.name, f.dataType) for f in decoded.schema[: len(event)]] == [
        (f.name, f.dataType) for f in event
    ]
    read = read_back(decoded.drop("partition"))
    _same(read, corpus.read)
    for options, wanted in zip(WAYS, corpus.written, strict=True):
        events = decoded.withColumn("partition", decoded["offset"])
        records = encode_events(events, errors="column", **options)
        _same({row.partition: _record(row) for row in records.collect()}, wanted)


def _record(row: Any) -> Any:
    if row.error is not None:
        return None
    return [(h.key, bytes(h.value)) for h in row.headers], None if row.value is None else bytes(row.value)


def _same(found: dict[int, Any], wanted: dict[int, Any]) -> None:
    assert len(found) == len(wanted)
    different = {n: (found[n], wanted[n]) for n in wanted if found[n] != wanted[n]}
    assert not different, f"{len(different)} differ, the first: {next(iter(different.values()))}"


@pytest.mark.release  # test_decode and test_columns have zones, cases and collations
@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("session", SAMPLE, indirect=True)
def test_some_settings_change_nothing(session: SparkSession, small: Corpus) -> None:
    """A sample of the settings changes no result for the vectors."""
    check(session, small)


@pytest.mark.release
@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("session", SETTINGS, indirect=True)
def test_settings_change_nothing(session: SparkSession, large: Corpus) -> None:
    """No setting changes a result for vectors, edges and changed records."""
    check(session, large)


def test_settings_exist(spark: SparkSession) -> None:
    """Spark has each of the settings; an unknown one would test nothing."""
    if not spark.version.startswith("4.0."):
        pytest.skip("other versions have other settings")
    assert len(SETTINGS) > 100
    names = {name for settings in SETTINGS.values() for name in settings}
    assert [name for name in sorted(names) if not spark.conf.isModifiable(name)] == []
