"""A batch that is appended through Spark Connect lands once, though its server goes on for a killed run.

The server may do what it was asked for at any time, before or after the next run has appended the same batch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark.pipeline import WrongTable
from cloudevents_kafka.spark.pipeline.tables import _iceberg
from cloudevents_kafka.spark.pipeline.tables._iceberg import IcebergTable
from tests.spark.pipeline.sample_batches import KEY, offsets, ranges, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


class Killed(Exception):
    """The process was killed."""


class Writer:
    """A run that appends batches, in a session that stands for one of Spark Connect."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.table = IcebergTable(spark, url=f"file://{folder}/events")
        self.asked: list[Callable[[], object]] = []

    def append(self, number: int, *, key: str = KEY) -> bool:
        start = 4 * number
        return self.table.append(rows(self.spark, start, start + 4), key, number, ranges(start, start + 4))

    def has(self, number: int) -> bool:
        return self.table.has_batch(KEY, number, ranges(4 * number, 4 * number + 4))

    def die_at(self, step: str, patch: pytest.MonkeyPatch) -> None:
        """Die when the server is asked for a step, which it may do later."""

        def die(ask: Callable[[], object]) -> None:
            self.asked.append(ask)
            raise Killed

        on_step(self, step, patch, die)

    def offsets(self) -> list[int]:
        self.spark.catalog.refreshTable(self.table._sql_name)
        return offsets(self.spark.table(self.table._sql_name))

    def branches(self) -> list[str]:
        refs = self.spark.table(f"{self.table._sql_name}.refs").where("type = 'BRANCH'").collect()
        return sorted(row["name"] for row in refs)


def on_step(
    writer: Writer, step: str, patch: pytest.MonkeyPatch, do: Callable[[Callable[[], object]], object]
) -> None:
    """Pass what a step of a writer does to a function."""
    from pyspark.sql.readwriter import DataFrameWriterV2

    if step == "take over":
        call = writer.table._call
        patch.setattr(writer.table, "_call", lambda *arguments: do(lambda: call(*arguments)))
    elif step == "drop":
        drop = writer.table._drop_branch
        patch.setattr(writer.table, "_drop_branch", lambda branch: do(lambda: drop(branch)))
    else:
        append: Any = DataFrameWriterV2.append
        patch.setattr(DataFrameWriterV2, "append", lambda self: do(lambda: append(self)))


@pytest.fixture(autouse=True)
def through_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_iceberg, "is_connect", lambda _: True)


def test_each_batch_once(session: SparkSession, tmp_path: Path) -> None:
    """Batches are appended once, by other runs too, and no branch is left."""
    writer = Writer(session, tmp_path)
    assert [writer.append(number) for number in (0, 1, 1, 0)] == [True, True, False, False]
    again = Writer(session, tmp_path)
    assert [again.append(number) for number in (1, 2)] == [False, True]
    assert again.offsets() == list(range(12))
    assert again.branches() == ["main"]


@pytest.mark.parametrize("moment", ["before", pytest.param("after", marks=pytest.mark.release)])
@pytest.mark.parametrize(
    "step",
    [
        pytest.param("append", marks=pytest.mark.release),
        "take over",
        pytest.param("drop", marks=pytest.mark.release),
    ],
)
def test_killed_run_goes_on(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, moment: str
) -> None:
    """The server does a step of a killed run just before the next run does it, or after this has ended."""
    first, second = Writer(session, tmp_path), Writer(session, tmp_path)
    first.append(0)
    with monkeypatch.context() as patch:
        first.die_at(step, patch)
        with pytest.raises(Killed):
            first.append(1)
    (late,) = first.asked

    def both(own: Callable[[], object]) -> None:
        if first.asked:
            first.asked.clear()
            late()
        own()

    with monkeypatch.context() as patch:
        if moment == "before":
            on_step(second, step, patch, both)
        # It appends nothing if a snapshot waits in the branch.
        assert second.append(1) is (step == "append")
    if moment == "after":
        with suppress(Exception):
            late()
    assert second.offsets() == list(range(8))
    assert Writer(session, tmp_path).append(1) is False
    assert second.append(2)
    assert second.offsets() == list(range(12))


@pytest.mark.release  # test_each_batch_once is its sample
def test_another_commit_meanwhile(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot is taken over after a commit of another writer, and known as the batch afterwards."""
    first, other, second = (Writer(session, tmp_path) for _ in range(3))
    first.append(0)
    with monkeypatch.context() as patch:
        first.die_at("take over", patch)
        with pytest.raises(Killed):
            first.append(1)
    assert not second.has(1)
    other.append(5, key="other/events")
    assert second.append(1) is False
    assert second.offsets() == [*range(8), *range(20, 24)]
    session.sql(f"DELETE FROM {second.table._sql_name} WHERE offset < 8")
    assert Writer(session, tmp_path).has(1)
    with pytest.raises(WrongTable, match="must have the offsets"):
        second.table.has_batch(KEY, 1, ranges(4, 9))


def test_no_branches(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without Iceberg's extensions of SQL is refused with what to do."""
    monkeypatch.setattr(_iceberg, "_EXTENSION", "org.example.Other")
    with pytest.raises(WrongTable, match=r"extensions must contain org\.example\.Other.*configure_session"):
        IcebergTable(session, url=f"file://{tmp_path}/events")
