"""Make ``sums.txt`` again: fetch every set of jars, each compared with its repository's sum.

``.venv/bin/python tests/jvm/pin.py`` takes some minutes. Do it when a version of Kafka is added to
`SETS`, or when a connector is published for a new PySpark, and look at what changes: a sum of
before never may.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from cloudevents_kafka.jvm import NoJars, cache, manifest, resolve, sums
from cloudevents_kafka.spark.connector import IN_PYSPARK
from cloudevents_kafka.testing.local.old_brokers import RELEASES
from cloudevents_kafka.testing.local.prepared import coordinates

KAFKA = ("3.9.1", "4.3.1")
# Those of which Maven Central has the connector whole.
PYSPARK = ("4.0.0", "4.2.0")
SETS = [
    *((coordinates(version), ()) for version in KAFKA),
    *(((f"org.apache.kafka:kafka-clients:{version}",), ()) for version in KAFKA),
    *((release.coordinates, ()) for release in RELEASES.values()),
    *(((f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",), IN_PYSPARK) for version in PYSPARK),
]
HEAD = (
    "# SHA-256 of jars in Maven Central, made by tests/jvm/pin.py of what was compared with the sums there.\n"
)


def main() -> None:
    known: dict[str, str] = {}
    sums.pinned = dict  # type: ignore[assignment]  # nothing is believed for having been written before
    with tempfile.TemporaryDirectory() as folder:
        os.environ[cache.CACHE_VARIABLE] = folder
        for wanted, exclude in SETS:
            try:
                jars = resolve(wanted, exclude=exclude)
            except NoJars as error:
                sys.stderr.write(f"left out: {error}\n")
                continue
            found = manifest.read(jars[0].parent)
            assert found is not None
            known |= {jar.coordinate: jar.sha256 for jar in found.jars}
    lines = [f"{digest}  {coordinate}\n" for coordinate, digest in sorted(known.items())]
    Path(str(sums.__file__)).with_name(sums.FILE_NAME).write_text(HEAD + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
