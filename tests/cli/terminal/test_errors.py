"""Packages that are not there: what lacks is said, with what to do, before anything begins; exit code 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cloudevents_kafka.testing.wire_broker import WireBroker

WITHOUT = """
import sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
from cloudevents_kafka.cli import main
main()
"""
NOWHERE = "127.0.0.1:1"
PIPELINE = ["pipeline", "-b", NOWHERE, "-t", "t", "-o", "out"]
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
    (
        "google.protobuf",
        ["produce", "-b", NOWHERE, "-t", "t", "--format", "protobuf", *EVENT],
        "--format protobuf needs google.protobuf",
        "protobuf",
    ),
    (
        "google",
        ["produce", "-b", NOWHERE, "-t", "t", "--format", "protobuf", *EVENT],
        "--format protobuf needs google.protobuf",
        "protobuf",
    ),
    *(
        (
            "cramjam",
            ["protocol", "produce", NOWHERE, "t", "x", "--compression", codec],
            f"--compression {codec} needs cramjam",
            "protocol",
        )
        for codec in ("snappy", "lz4", "zstd")
    ),
]


@pytest.mark.parametrize(("packages", "words", "told", "extra"), CASES)
def test_what_lacks_is_told_first(tmp_path, packages, words, told, extra):
    """One sentence says what lacks and how to install it; nothing is connected to, nothing written."""
    if extra == "spark":
        pytest.importorskip("pyspark")
    done = without(packages, *words, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"cloudevents-kafka: {told}: pip install 'cloudevents-kafka[{extra}]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ("cramjam,google_crc32c,kazoo", ["protocol", "produce", "--compression", "gzip"]),
        ("google.protobuf", ["produce", "--format", "avro", *EVENT, "-b"]),
        ("pyspark,py4j,pandas,pyarrow,jdk,rich", ["produce", *EVENT, "-b"]),
    ],
)
def test_what_is_not_needed_may_lack(packages, words):
    """Commands that need none of them do without: gzip is Python's own, as all but Spark and Protobuf is."""
    with WireBroker("4.3") as broker:
        more = ["-t", "t"] if "-b" in words else ["t", "x"]
        done = without(packages, *words, broker.bootstrap_servers, *more)
    assert (done.returncode, done.stderr) == (0, "")


def test_records_that_cannot_be_unpacked(run):
    """Records that are fetched and cannot be unpacked tell the same, and are no bad data."""
    with WireBroker("4.3") as broker:
        at = broker.bootstrap_servers
        assert run("protocol", "produce", at, "t", "x" * 99, "--compression", "lz4").exit_code == 0
        done = without("cramjam", "protocol", "fetch", at, "t")
    assert (done.returncode, done.stdout) == (2, "")
    assert "lz4 needs cramjam: pip install 'cloudevents-kafka[protocol]'" in done.stderr
    assert "see what it sent" not in done.stderr
