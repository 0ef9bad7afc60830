"""Write ``jar_sets.toml``: the jars of each named set, each compared with its repository's checksum.

``.venv/bin/python -m tests.support.pin_jars`` takes some minutes. Run it after adding a set to `REQUESTS`,
and review the difference: the list of an existing set stays, and a checksum never changes.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import cloudevents_kafka.jvm
from cloudevents_kafka.jvm import Progress, _checksums
from cloudevents_kafka.jvm._coordinates import FILE_NAME, Coordinate, JarRequest, jar_sets
from cloudevents_kafka.jvm._jars import download
from cloudevents_kafka.jvm._repository import find_repository
from cloudevents_kafka.jvm._web import Repository
from cloudevents_kafka.spark.connector import IN_PYSPARK
from cloudevents_kafka.spark.table_formats import (
    FORMATS,
)
from cloudevents_kafka.testing.local import kafka_coordinates
from tests.support.old_brokers import RELEASES

KAFKA = ("3.9.1", "4.3.1")
PYSPARK = ("4.0.0", "4.1.1", "4.2.0")  # the versions whose connector is complete in Maven Central
DELTA = (*FORMATS["delta"].releases.values(), "io.delta:delta-spark_2.13:4.0.1")
ICEBERG = (
    *FORMATS["iceberg"].releases.values(),
    "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.1",
    "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
)


def _name(coordinate: str) -> str:
    _, artifact, version = coordinate.split(":")
    return f"{artifact.replace('_2.13', '')} {version}"


REQUESTS = {
    **{f"kafka {version}": JarRequest.create(kafka_coordinates(version)) for version in KAFKA},
    **{f"kafka {version}": JarRequest.create(coordinates) for version, coordinates in RELEASES.items()},
    **{
        f"spark-sql-kafka {version}": JarRequest.create(
            [f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"], IN_PYSPARK
        )
        for version in PYSPARK
    },
    **{_name(one): JarRequest.create([one], FORMATS["delta"].in_pyspark) for one in DELTA},
    **{_name(one): JarRequest.create([one]) for one in ICEBERG},
    **{
        _name(one): JarRequest.create([one], FORMATS["avro"].in_pyspark)
        for one in FORMATS["avro"].releases.values()
    },
}
HEAD = "# The named sets of jars: the answer to each request, with SHA-256. By tests/support/pin_jars.py.\n"


def table(name: str, request: JarRequest, digests: dict[Coordinate, str]) -> str:
    """Return a set as a table of TOML."""
    rows = {"coordinates": request.coordinates}
    if request.exclude:
        rows["exclude"] = request.exclude
    rows["jars"] = tuple(f"{digest}  {coordinate}" for coordinate, digest in sorted(digests.items()))
    lists = (
        f"{key} = [\n" + "".join(f'    "{text}",\n' for text in texts) + "]\n" for key, texts in rows.items()
    )
    return f'\n["{name}"]\n' + "".join(lists)


def digests(request: JarRequest, repository: Repository, folder: Path) -> dict[Coordinate, str]:
    """Return the SHA-256 of each jar of a request, after comparing it with the repository's checksum."""
    from cloudevents_kafka.jvm._resolver import resolve_request

    listed = jar_sets().get(request)
    wanted = listed or resolve_request(request, repository, Progress())
    show = partial(sys.stderr.write, ".")
    found = {one: download(one, repository, folder, show) for one in wanted}
    assert found == (listed or found), "a checksum has changed"
    return found


def main() -> None:
    _checksums.pinned_checksums = dict  # each jar is compared with the repository's checksum
    with tempfile.TemporaryDirectory() as folder:
        repository = find_repository()
        tables = [
            table(name, request, digests(request, repository, Path(folder)))
            for name, request in REQUESTS.items()
        ]
    path = Path(cloudevents_kafka.jvm.__file__).with_name(FILE_NAME)
    path.write_text(HEAD + "".join(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
