"""A topic landed on clusters, by ``spark-submit``, while workers and executors are killed."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.connector import connector_jars
from cloudevents_kafka.spark.package_zip import write_zip
from cloudevents_kafka.testing import LocalBroker

from .spark_home import QUICK, descendants, environment, kill
from .standalone import standalone

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(500)]

LANDING = Path(__file__).with_name("landing.py")
EXECUTOR = "CoarseGrainedExecutorBackend"
SECONDS = 200


def produce(broker: LocalBroker, topic: str, count: int) -> None:
    """Send events of two partitions; each tenth record is not one."""
    from cloudevents_kafka.testing.local.clients import create_topic

    create_topic(broker.bootstrap_servers, topic, 2, {})
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 1_000_000}
    )
    for number in range(count):
        record = to_record(Event(id=str(number), source="/s", type="t", data=b"1"), mode="binary")
        headers = list(record.headers) if number % 10 else [("ce_specversion", b"1.0")]
        producer.produce(topic, value=record.value, headers=headers, partition=number % 2)
    assert producer.flush(60) == 0


class Submit:
    """A running ``spark-submit``."""

    def __init__(self, folder: Path, master: str, variables: Mapping[str, str], *arguments: str) -> None:
        write_zip(folder / "package.zip")
        settings = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": QUICK,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.extraJavaOptions": QUICK,
            "spark.executor.memory": "512m",
            "spark.local.dir": str(folder),
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
        }
        argv = [f"{variables['SPARK_HOME']}/bin/spark-submit", "--master", master]
        argv += ["--jars", ",".join(map(str, connector_jars())), "--py-files", str(folder / "package.zip")]
        argv += [option for name, value in settings.items() for option in ("--conf", f"{name}={value}")]
        self.log = folder / "submit.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [*argv, str(LANDING), *arguments], stdout=output, stderr=output, cwd=folder, env=variables
            )

    def executors(self, parent: int) -> list[int]:
        """Return the executors below a process as soon as there is one."""
        deadline = time.monotonic() + SECONDS
        while not (found := descendants(parent, EXECUTOR)):
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.05)
        return found

    def text(self) -> str:
        return self.log.read_text()[-5000:]

    def end(self) -> list[str]:
        """Wait for a successful end; return what landed."""
        assert self.process.wait(SECONDS) == 0, self.text()
        (landed,) = [line for line in self.log.read_text().splitlines() if line.startswith("landed ")]
        return landed.split()[1:]


@contextmanager
def submitted(folder: Path, master: str, variables: Mapping[str, str], *arguments: str) -> Iterator[Submit]:
    job = Submit(folder, master, variables, *arguments)
    try:
        yield job
    finally:
        job.process.kill()
        job.process.wait(30)


def landed(out: Path, table: str) -> list[tuple[int, int]]:
    found = ds.dataset(out / table).to_table(["partition", "offset"]).to_pylist()
    return sorted((row["partition"], row["offset"]) for row in found)


def check_landed(out: Path, count: int) -> None:
    """Each record is in one of the tables once."""
    events, quarantine = landed(out, "events"), landed(out, "quarantine")
    assert sorted(events + quarantine) == [(p, n) for p in range(2) for n in range(count // 2)]
    assert len(quarantine) == count // 10


def wait_for_batch(out: Path, job: Submit) -> None:
    """Wait until the first batch has landed."""
    deadline = time.monotonic() + SECONDS
    while not list((out / "_batches").glob("0*.json")):
        assert job.process.poll() is None, job.text()
        assert time.monotonic() < deadline, job.text()
        time.sleep(0.02)


@pytest.mark.release  # test_local_cluster is its sample
def test_executor_killed_on_local_cluster(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """An executor dies while batches land: each record lands once, without the package on the workers."""
    produce(kafka_broker, "local-cluster", 4_000)
    variables, out = environment(tmp_path), tmp_path / "out"
    arguments = (kafka_broker.bootstrap_servers, "local-cluster", str(out), "500")
    with submitted(tmp_path, "local-cluster[2,1,1024]", variables, *arguments) as job:
        wait_for_batch(out, job)
        kill(job.executors(job.process.pid)[0])
        assert job.end() == ["3600", "400", "8"]
    check_landed(out, 4_000)


@pytest.mark.release
def test_worker_killed_on_a_standalone_cluster(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """A worker dies with its executor in mid-run, and another one joins: each record lands once."""
    produce(kafka_broker, "standalone", 200_000)
    variables, out = environment(tmp_path), tmp_path / "out"
    arguments = (kafka_broker.bootstrap_servers, "standalone", str(out), "10000")
    with (
        standalone(tmp_path, variables) as cluster,
        submitted(tmp_path, cluster.url, variables, *arguments) as job,
    ):
        wait_for_batch(out, job)
        worker = cluster.workers[0]
        executors = job.executors(worker.pid)
        worker.kill()
        for executor in executors:
            kill(executor)
        rescue = threading.Timer(1, cluster.start_worker, ["worker-2"])
        rescue.start()
        assert job.end() == ["180000", "20000", "20"]
        rescue.join()
    check_landed(out, 200_000)
