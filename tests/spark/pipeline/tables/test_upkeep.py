"""Many commits with upkeep between them keep the metadata small, and do not make a commit slower.

The variable COMMITS is the number of commits; upkeep is done after each 360, an hour of batches of 10 s, and
keeps what a pipeline may need meanwhile: versions of a day, of which it keeps the newest 1,000. A commit is
measured in seconds of the processor, as others use the machine, too.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.spark.pipeline.notes import Ledger
from cloudevents_kafka.spark.pipeline.tables import _table, table_in_folder
from tests.spark.pipeline.sample_batches import PIPELINE, offsets, ranges, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.release,
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
COMMITS = int(os.environ.get("COMMITS", "2000"))
HOUR = 360
METADATA = {"delta": "_delta_log", "iceberg": "metadata"}


def processor_seconds(process: int) -> float:
    """Return the processor's time of another process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_many_commits(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    """The metadata stays below 1 GB, and the commits of the last hour take as long as those of the first."""
    monkeypatch.setattr(_table, "SHORTEST_HOURS", 0)  # here an hour of commits takes minutes
    url = f"file://{tmp_path}/events"
    java = int(session._jvm.java.lang.ProcessHandle.current().pid())
    used = lambda: time.process_time() + processor_seconds(java)  # noqa: E731  # of both processes
    table, ledger = table_in_folder(session, table_format, url), Ledger()
    seconds, sizes = [], []
    for number in range(COMMITS):
        began = used()
        staged = table.stage(rows(session, number, number + 1))
        before, ledger = ledger, ledger.add(PIPELINE, {}, ranges(number, number + 1))
        table.commit([staged], before, ledger)
        assert table.id()
        seconds.append(used() - began)
        if number % HOUR == HOUR - 1:
            upkeep = table_in_folder(session, table_format, url)
            upkeep.optimize()
            upkeep.vacuum(keep_hours=24)
            folder = tmp_path / "events" / METADATA[table_format]
            sizes.append(sum(path.stat().st_size for path in folder.rglob("*")))
            median = statistics.median(seconds[-100:])
            done = f"{number + 1} commits, {sizes[-1]:,} bytes of metadata, {median:.3f} s for a commit"
            sys.stderr.write(f"{table_format}: {done}\n")
    assert table_in_folder(session, table_format, url).ledger() == ledger
    found = offsets(session.table(table._sql_name))
    assert found == list(range(COMMITS))
    assert max(sizes, default=0) < 1 << 30
    assert statistics.median(seconds[-100:]) < 2 * statistics.median(seconds[:200])
