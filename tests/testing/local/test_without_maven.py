"""A local broker needs Java, and neither Maven nor PySpark: shown from an empty cache."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cloudevents_kafka.jvm import CACHE_VARIABLE, find_java
from cloudevents_kafka.testing.local import KAFKA_VERSION, kafka_coordinates
from tests.support.maven_repository import named_set, serving

pytestmark = pytest.mark.broker

# Imported by Python at its start.
SITE = "import sys; sys.modules['pyspark'] = None; sys.modules['jgo'] = None"
TEST = """
import shutil
import pytest
from confluent_kafka import Producer
from cloudevents_kafka.testing import LocalBroker

def test_fixtures(kafka_broker, kafka_topic):
    with pytest.raises(ImportError):
        import pyspark
    assert shutil.which("mvn") is None
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce(kafka_topic, b"value")
    assert producer.flush(20) == 0
    assert isinstance(kafka_broker, LocalBroker)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of a machine with an empty cache, an empty PATH, and a repository of Kafka's jars."""
    folder = tmp_path_factory.mktemp("machine")
    (folder / "sitecustomize.py").write_text(SITE)
    with serving() as repository:
        for path, data in named_set(kafka_coordinates(KAFKA_VERSION)).items():
            repository.put(path, data)
        yield {
            "PATH": str(folder),
            "HOME": str(folder),
            "JAVA_HOME": str(find_java().home),
            "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
            CACHE_VARIABLE: str(folder / "cache"),
            "CLOUDEVENTS_KAFKA_MAVEN_MIRROR": repository.url,
        }


@pytest.mark.release
def test_fixtures(environment, tmp_path):
    """The fixtures of the pytest plugin start a broker."""
    (tmp_path / "test_it.py").write_text(TEST)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    argv = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.release  # each run on a new machine, by .github, is its sample
def test_command(environment):
    """The command ``broker`` starts one too, from the cache."""
    pytest.importorskip("click")
    argv = [sys.executable, "-m", "cloudevents_kafka", "broker", "--topic", "orders:2"]
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline().startswith("127.0.0.1:")
        program.send_signal(signal.SIGINT)
        assert program.wait(30) == 130
