"""Many commits with upkeep between them keep the metadata small, and do not make a commit slower.

The variable COMMITS is the number of commits; upkeep is done after each 360, an hour of batches of 10 s.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import pytest

from cloudevents_kafka.spark.pipeline.tables import table_in_folder
from tests.spark.pipeline.sample_batches import offsets, ranges, rows, take

pytestmark = [
    pytest.mark.spark,
    pytest.mark.release,
    pytest.mark.timeout(7200),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
COMMITS = int(os.environ.get("COMMITS", "2000"))
HOUR = 360
METADATA = {"delta": "_delta_log", "iceberg": "metadata"}


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_many_commits(session, tmp_path: Path, table_format: str) -> None:
    """The metadata stays below 1 GB, and the commits of the last hour take as long as the first."""
    url = f"file://{tmp_path}/events"
    seconds, sizes = [], []
    for number in range(COMMITS):
        began = time.monotonic()
        take(
            table_in_folder(session, table_format, url),
            rows(session, number, number + 1),
            ranges(number, number + 1),
        )
        seconds.append(time.monotonic() - began)
        if number % HOUR == HOUR - 1:
            table = table_in_folder(session, table_format, url)
            table.optimize()
            table.vacuum(keep_hours=0)
            folder = tmp_path / "events" / METADATA[table_format]
            sizes.append(sum(path.stat().st_size for path in folder.rglob("*")))
            median = statistics.median(seconds[-100:])
            done = f"{number + 1} commits, {sizes[-1]:,} bytes of metadata, {median:.3f} s for a commit"
            sys.stderr.write(f"{table_format}: {done}\n")
    table = table_in_folder(session, table_format, url)
    found = offsets(session.table(table._sql_name))
    assert found == list(range(COMMITS))
    assert max(sizes, default=0) < 1 << 30
    assert statistics.median(seconds[-100:]) < 2 * statistics.median(seconds[:200])
