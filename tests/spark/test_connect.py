"""What works through Spark Connect, on a real server: the functions for frames, and no pipeline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudevents_kafka.spark.connector import connector_jars
from cloudevents_kafka.testing import LocalBroker
from tests.spark.java.connect_server import ROOT, connect_server, environment
from tests.spark.pages import CONNECT_PAGE, spark_blocks

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.release]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server with the Kafka connector."""
    pytest.importorskip("grpc")
    jars = ",".join(map(str, connector_jars()))
    settings = {"spark.sql.shuffle.partitions": "2"}
    with connect_server(tmp_path_factory.mktemp("connect"), settings, "--jars", jars) as url:
        yield url


def run(*arguments: str) -> list[str]:
    """Return the lines of a program in a process of its own: PySpark has one kind of session in each."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env=environment(),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_page(server: str, kafka_broker: LocalBroker, kafka_topic: str) -> None:
    """The Python blocks of the page about Spark Connect run, one after the other."""
    run(str(ROOT / "examples" / "emit.py"), kafka_broker.bootstrap_servers, kafka_topic)
    code = "\n".join(spark_blocks(CONNECT_PAGE)).replace("sc://localhost:15002", server)
    code = code.replace("localhost:9092", kafka_broker.bootstrap_servers)
    printed = run("-c", code.replace('"orders"', f'"{kafka_topic}"'))
    for step in ("placed", "paid", "shipped"):
        assert f"Row(type='com.example.order.{step}', count=1)" in printed[0]


def test_pipelines_are_refused(server: str, tmp_path: Path) -> None:
    """A pipeline and a replay need a session in this process, and say where to start them."""
    code = (
        "import sys\n"
        "from pyspark.sql import SparkSession\n"
        "from cloudevents_kafka.spark.pipeline import NotOnConnect, ReplayOptions, replay_quarantine\n"
        "from tests.support import docstrings\n"
        "for doc in docstrings.with_examples():\n"
        "    if doc.needs == 'Connect':\n"
        "        docstrings.run(doc, connect=sys.argv[1])\n"
        "        print(doc.name)\n"
        "spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()\n"
        "try:\n"
        "    replay_quarantine(ReplayOptions(out=sys.argv[2]), spark=spark)\n"
        "except NotOnConnect as error:\n"
        "    print(error)\n"
    )
    name, sentence = run("-c", code, server, str(tmp_path))
    assert name == "NotOnConnect"
    assert sentence.startswith(
        "spark must be a Spark session of this process, got a Spark Connect session. Run "
    )
    assert "docs/how-to/connect_and_clusters.md" in sentence
