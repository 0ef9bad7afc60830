"""What a run says that it landed is in the table, after changes to folders, checkpoints and topics too."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.spark.pipeline import PipelineFailed, WrongCheckpoint, WrongTable
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from tests.spark.pipeline.lake import Lake, produce, produce_broken, recreate

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


class Target:
    """A table of a catalog, and folders of pipelines that land in it."""

    def __init__(self, lake: Lake, to: str, name: str) -> None:
        self.lake, self.to, self.name = lake, to, name

    def run(self, folder: str = "a", **options: Any) -> Any:
        lake = Lake.copy_to(self.lake, self.lake.out / folder)
        return lake.run(to=self.to, table=self.name, **options)

    def forget(self, folder: str = "a") -> None:
        """Remove the folder of a pipeline, with its notes and its checkpoint."""
        shutil.rmtree(self.lake.out / folder)

    def rows(self) -> list[tuple[str, int]]:
        """Return type and offset of the rows."""
        self.lake.spark.catalog.refreshTable(self.name)
        found = self.lake.spark.table(self.name).select("type", "offset").collect()
        return sorted((row["type"], row["offset"]) for row in found)


def sample(kind: str) -> pytest.MarkDecorator:
    """Return the kinds of tables of a test, of which one is for each run of the tests."""
    kinds = [
        pytest.param(each, marks=[] if each == kind else pytest.mark.release) for each in ("delta", "iceberg")
    ]
    return pytest.mark.parametrize("target", kinds, indirect=True)


@pytest.fixture
def target(lake: Lake, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    name = tmp_path.name.replace("-", "_").lower()
    if request.param == "delta":
        table = f"spark_catalog.default.{name}"
    else:
        catalog = f"ledger_{name}"
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hadoop",
            ".warehouse": f"{tmp_path}/ice",
        }
        for setting, value in settings.items():
            lake.spark.conf.set(f"spark.sql.catalog.{catalog}{setting}", value)
        table = f"{catalog}.lake.events"
    yield Target(lake, str(request.param), table)
    for suffix in ("", "_quarantine"):
        lake.spark.sql(f"DROP TABLE IF EXISTS {table}{suffix}")


def events(count: int, type_: str = "t", start: int = 0) -> list[tuple[str, int]]:
    return [(type_, offset) for offset in range(start, start + count)]


@sample("iceberg")
def test_a_topic_made_anew(target: Target) -> None:
    """Records of another topic of the same name land in the same table, from a fresh folder."""
    produce(target.lake.broker, target.lake.topic, 6)
    assert target.run().total.events == 6
    recreate(target.lake.broker, target.lake.topic, 5)
    assert target.run("b").total.events == 5
    assert target.rows() == [*events(5, "new"), *events(6)]


@sample("iceberg")
def test_a_removed_folder(target: Target) -> None:
    """Without its folder a pipeline continues after what the table has."""
    produce(target.lake.broker, target.lake.topic, 6)
    target.run()
    target.forget()
    produce(target.lake.broker, target.lake.topic, 4)
    assert target.run().total.events == 4
    assert target.rows() == events(10)


@sample("iceberg")
def test_a_second_pipeline(target: Target) -> None:
    """Another pipeline lands what the first has not; then the first is refused, with the names of both."""
    produce(target.lake.broker, target.lake.topic, 6)
    target.run()
    assert target.run("b").total.events == 0
    produce(target.lake.broker, target.lake.topic, 3)
    assert target.run("b").total.events == 3
    with pytest.raises(
        WrongTable, match=r"pipeline \w{12} must not land lake-\d+\[0\]@6 to 8, which pipeline \w{12}"
    ):
        target.run()
    assert target.rows() == events(9)


@sample("iceberg")
def test_a_dropped_table(target: Target) -> None:
    """A table that is gone ends the run, and so does another one of the same name."""
    produce(target.lake.broker, target.lake.topic, 6)
    target.run()
    target.lake.spark.sql(f"DROP TABLE {target.name}")
    with pytest.raises(WrongTable, match=r"must be the table with id .*, but it does not exist"):
        target.run()
    target.run("b")
    with pytest.raises(WrongTable, match="is another table"):
        target.run()
    assert target.rows() == events(6)


@sample("delta")
def test_another_name(target: Target) -> None:
    """A mistyped name of the table makes no second table."""
    produce(target.lake.broker, target.lake.topic, 6)
    target.run()
    name, target.name = target.name, f"{target.name}s"
    with pytest.raises(WrongTable, match="does not exist"):
        target.run()
    assert not target.lake.spark.catalog.tableExists(target.name)
    target.name = name


@sample("iceberg")
def test_rows_of_others(target: Target) -> None:
    """Rows without a commit of a pipeline prove nothing: the table is refused until it is adopted."""
    produce(target.lake.broker, target.lake.topic, 3)
    target.run()
    rows = target.lake.spark.table(target.name)
    other = f"{target.name}_copy"
    rows.writeTo(other).using(target.to).partitionedBy("record_date").create()  # type: ignore[arg-type]
    name, target.name = target.name, other
    with pytest.raises(WrongTable, match="has rows, but no commit of a pipeline"):
        target.run("b")
    for _ in range(2):  # the second run continues the first
        assert target.run("b", adopt=True).total.events == 3
    assert target.run("b").total.events == 3
    assert target.rows() == sorted([*events(3), *events(3)])
    target.lake.spark.sql(f"DROP TABLE {other}")
    target.name = name


def test_staged_files_that_were_removed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a landed Parquet batch that were removed before their renames are reported."""

    def die(*_: Any) -> None:
        raise OSError("killed")

    produce(lake.broker, lake.topic, 5)
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "rename", die)
        with pytest.raises(PipelineFailed):
            lake.run()
    shutil.rmtree(lake.out / "_staging")
    produce(lake.broker, lake.topic, 5)
    with pytest.raises(
        WrongCheckpoint, match=r"batch 0 with lake-\d+\[0\]@0 to 4 has landed, but the files were removed"
    ):
        lake.run()
    assert lake.rows() == []


@pytest.mark.parametrize("table", ["events", "quarantine"])
def test_a_removed_parquet_table(lake: Lake, table: str) -> None:
    """A table of Parquet files that is gone ends the run."""
    produce(lake.broker, lake.topic, 5)
    produce_broken(lake.broker, lake.topic, 1)
    lake.run()
    shutil.rmtree(lake.out / table)
    with pytest.raises(WrongCheckpoint, match="must "):
        lake.run()
