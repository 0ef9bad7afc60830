"""A missing package is reported with its extra before the command starts; exit code 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cloudevents_kafka.jvm import resolve
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.spark.connector import connector_jars
from cloudevents_kafka.testing.local import KAFKA_VERSION, kafka_coordinates
from tests.support.cases import each
from tests.support.samples import one_in
from tests.support.wire_broker import WireBroker

WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from cloudevents_kafka.cli import main
main()
"""
NOWHERE = "127.0.0.1:1"
PIPELINE = ["pipeline", "-b", NOWHERE, "-t", "t", "-o", "out"]
PROTOBUF = ["produce", "-b", NOWHERE, "-t", "t", "--format", "protobuf"]
EVENT = ["--source", "/", "--type", "t"]


def without(packages, *words, folder=None):
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, packages, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
        cwd=folder,
    )


CASES = [
    ("py4j", PIPELINE, "pipeline needs py4j", "spark"),
    ("pyspark,py4j,pandas,pyarrow", PIPELINE, "pipeline needs pyspark, py4j, pandas, pyarrow", "spark"),
    ("pandas", PIPELINE, "pipeline needs pandas", "spark"),
    ("pyspark", ["demo", "--out", "out"], "demo needs pyspark", "spark"),
    *(
        (package, [*PROTOBUF, *EVENT], "--format protobuf needs google.protobuf", "protobuf")
        for package in ("google.protobuf", "google")
    ),
    *(
        (
            "cramjam",
            ["protocol", "produce", "-b", NOWHERE, "t", "x", "--compression", codec],
            f"--compression {codec} needs cramjam",
            "protocol",
        )
        for codec in ("snappy", "lz4", "zstd")
    ),
]


@pytest.mark.parametrize(("packages", "words", "message", "extra"), one_in(3, CASES, members=4))
def test_missing_packages_are_reported_first(tmp_path, packages, words, message, extra):
    """One message has the missing packages and the command to install them; nothing is written."""
    if extra == "spark":
        pytest.importorskip("pyspark")
        # A command reports all that cannot be had at once, so it fetches jars that are not there.
        resolve(kafka_coordinates(KAFKA_VERSION))
        connector_jars()
    result = without(packages, *words, folder=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"cloudevents-kafka: {message}: {pip_install(extra)}\n"
    assert list(tmp_path.iterdir()) == []


@each(
    ("packages", "words"),
    [
        ("cramjam,google_crc32c,kazoo", ["protocol", "produce", "--compression", "gzip", "-b"]),
        ("google.protobuf", ["produce", "--format", "avro", *EVENT, "-b"]),
        ("pyspark,py4j,pandas,pyarrow,jdk", ["produce", *EVENT, "-b"]),
    ],
)
def test_optional_packages(packages, words):
    """Commands run without the packages that they do not use; gzip is in the standard library."""
    with WireBroker("4.3") as broker:
        broker.create_topic("t")
        more = ["t", "x"] if "protocol" in words else ["-t", "t"]
        result = without(packages, *words, broker.bootstrap_servers, *more)
    assert (result.returncode, result.stderr) == (0, "")


def test_records_whose_codec_is_missing(run):
    """Fetched records whose codec is missing have the same message, and are not bad data."""
    with WireBroker("4.3") as broker:
        at = broker.bootstrap_servers
        broker.create_topic("t")
        assert run("protocol", "produce", "-b", at, "t", "x" * 99, "--compression", "lz4").exit_code == 0
        result = without("cramjam", "protocol", "fetch", "-b", at, "t")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"lz4 needs cramjam: {pip_install('protocol')}" in result.stderr
    assert "to see the frames" not in result.stderr
