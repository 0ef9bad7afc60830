"""Appends batches to two tables in a loop, and is killed: ``table_driver.py FORMAT FOLDER BATCHES``.

The note of a batch is written before its tables, as in the pipeline; a start finishes the last note.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from cloudevents_kafka.spark.pipeline import local_session
from cloudevents_kafka.spark.pipeline._table_names import table_in_folder

if __package__:
    from .batches import ranges, rows
else:
    from batches import ranges, rows

ROWS = 4


def main(table_format: str, folder: str, batches: int) -> None:
    note = Path(folder, "note")
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    with local_session(master="local[2]", formats=[table_format], kafka=False, conf=conf) as spark:
        tables = [table_in_folder(spark, table_format, f"file://{folder}/{name}") for name in ("a", "b")]
        first = int(note.read_text()) if note.exists() else 0
        for number in count(first):
            if number == batches:
                break
            draft = note.with_suffix(".draft")
            draft.write_text(str(number))
            draft.replace(note)
            _say(str(number))
            start = number * ROWS
            for table in tables:
                table.append(
                    rows(spark, start, start + ROWS), f"q/{table.name}", number, ranges(start, start + ROWS)
                )
    _say("done")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
