"""The law of landing holds on real tables, in random histories of a broker, Spark and three formats.

`test_landing_law` has thousands of histories in memory; these are a sample with all real parts. The
variable LANDINGS is the number of histories of each format.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.pipeline import PipelineError
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from cloudevents_kafka.spark.pipeline.tables._delta import DeltaTable
from cloudevents_kafka.spark.pipeline.tables._iceberg import IcebergTable
from tests.spark.pipeline.lake import Lake, recreate
from tests.support.strategies import scaled

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
LANDINGS = int(os.environ.get("LANDINGS", "3"))
STEPS = max(8, scaled(14))
SAMPLE = 3
MUTATIONS = (
    *((LocalStore, name) for name in ("create", "rename", "remove")),
    *((table, name) for table in (DeltaTable, IcebergTable) for name in ("stage", "commit")),
)
Row = tuple[str, int]  # generation of the topic, offset


class Killed(Exception):
    """The process ends here."""


class Kills:
    """Ends a run before or after one of its changes, as a kill does."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.steps_to_live = -1
        for owner, name in MUTATIONS:
            patch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self._step()
            result = change(*arguments, **options)
            self._step()
            return result

        return counted

    def _step(self) -> None:
        if self.steps_to_live == 0:
            raise Killed
        self.steps_to_live -= 1


class History:
    """A random history of a topic, folders and tables."""

    def __init__(self, lake: Lake, to: str, name: str, kills: Kills, seed: int) -> None:
        self.lake, self.to, self.name, self._kills = lake, to, name, kills
        self._rng = random.Random(seed)
        self._generation = 0
        self._sent = 0
        self.completed = 0

    def go(self, steps: int) -> None:
        choices = [
            *[self.produce] * 4,
            *[self.run] * 4,
            *[self.run_killed] * 5,
            *(self.forget_checkpoint, self.forget_notes, self.forget_folder, self.topic_anew),
            *([self.drop_events] if self.to != "parquet" else []),
        ]
        self.produce()
        for _ in range(steps):
            self._rng.choice(choices)()
            self.check_once()
        self._kills.steps_to_live = -1
        for folder in "ab":
            shutil.rmtree(self.lake.out / folder, ignore_errors=True)
        self._complete("a")

    def _folder(self) -> str:
        return "a" if self.to == "parquet" else self._rng.choice("ab")

    def produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.lake.broker.bootstrap_servers})
        count = self._rng.randrange(1, 9)
        for number in range(self._sent, self._sent + count):
            text = f"g{self._generation}"
            record = to_record(Event(id=str(number), source="/s", type=text, data=b"1"), mode="binary")
            headers = list(record.headers) if number % 4 else [("ce_specversion", b"1.0")]
            producer.produce(self.lake.topic, value=text, headers=headers, partition=0)
        assert producer.flush(30) == 0
        self._sent += count

    def run(self) -> None:
        self._kills.steps_to_live = -1
        with suppress(PipelineError):
            self._complete(self._folder())

    def run_killed(self) -> None:
        self._kills.steps_to_live = self._rng.randrange(14)
        with suppress(PipelineError, Killed):
            self._complete(self._folder())

    def _complete(self, folder: str) -> None:
        """Run, and check that the tables have all records of the topic."""
        lake = Lake.copy_to(self.lake, self.lake.out / folder)
        table = {} if self.to == "parquet" else {"table": self.name}
        summary = lake.run(to=self.to, max_records=self._rng.choice([3, 50]), **table)
        assert summary.complete
        self.completed += 1
        found = {offset for generation, offset in self.rows() if generation == f"g{self._generation}"}
        assert found == set(range(self._sent))

    def forget_checkpoint(self) -> None:
        shutil.rmtree(self.lake.out / self._folder() / "_checkpoint", ignore_errors=True)

    def forget_notes(self) -> None:
        shutil.rmtree(self.lake.out / self._folder() / "_batches", ignore_errors=True)

    def forget_folder(self) -> None:
        shutil.rmtree(self.lake.out / self._folder(), ignore_errors=True)

    def topic_anew(self) -> None:
        recreate(self.lake.broker, self.lake.topic, 0)
        self._generation += 1
        self._sent = 0
        self.produce()

    def drop_events(self) -> None:
        self.lake.spark.sql(f"DROP TABLE IF EXISTS {self.name}")

    def check_once(self) -> None:
        """Check that the tables have no record twice."""
        assert max(Counter(self.rows()).values(), default=1) == 1

    def rows(self) -> list[Row]:
        """Return the rows of events and of other records."""
        return [*self._rows("events", "type"), *self._rows("quarantine", "value")]

    def _rows(self, table: str, column: str) -> Iterator[Row]:
        for row in self._read(table, column):
            text = row[column]
            yield text if isinstance(text, str) else bytes(text).decode(), row["offset"]

    def _read(self, table: str, column: str) -> Any:
        if self.to == "parquet":
            folder: Path = self.lake.out / "a" / table
            return ds.dataset(folder).to_table([column, "offset"]).to_pylist() if folder.exists() else []
        name = self.name if table == "events" else f"{self.name}_quarantine"
        if not self.lake.spark.catalog.tableExists(name):
            return []
        self.lake.spark.catalog.refreshTable(name)
        return self.lake.spark.table(name).select(column, "offset").collect()

    def close(self) -> None:
        if self.to != "parquet":
            for suffix in ("", "_quarantine"):
                self.lake.spark.sql(f"DROP TABLE IF EXISTS {self.name}{suffix}")


def table_name(lake: Lake, to: str, folder: Path, seed: int) -> str:
    """Return the name of a table in a catalog, which is set."""
    name = f"{folder.name.replace('-', '_').lower()}_{seed}"
    if to == "delta":
        return f"spark_catalog.default.{name}"
    catalog = f"law_{name}"
    lake.spark.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
    lake.spark.conf.set(f"spark.sql.catalog.{catalog}.type", "hadoop")
    lake.spark.conf.set(f"spark.sql.catalog.{catalog}.warehouse", f"{folder}/ice")
    return f"{catalog}.lake.events"


@pytest.mark.parametrize(
    ("to", "steps"),
    [
        ("parquet", SAMPLE),
        *(pytest.param(to, SAMPLE, marks=pytest.mark.release) for to in ("delta", "iceberg")),
        *(pytest.param(to, STEPS, marks=pytest.mark.release) for to in ("parquet", "delta", "iceberg")),
    ],
)
def test_random_histories(
    lake: Lake, to: str, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is in the tables twice, and a run that ends well has missed none."""
    kills = Kills(monkeypatch)
    for seed in range(1 if steps == SAMPLE else LANDINGS):
        other = Lake(lake.spark, lake.broker, tmp_path / str(seed))
        history = History(other, to, table_name(other, to, tmp_path, seed), kills, seed)
        try:
            history.go(steps)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            kills.steps_to_live = -1
            history.close()
        assert history.completed
