"""A pipeline on Spark Connect lands in Delta and Iceberg, each record once."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spark.fast.connect_server import connect_server, environment

from cloudevents_kafka.spark.connector import connector_jars
from cloudevents_kafka.spark.table_formats import table_jars, table_settings
from cloudevents_kafka.testing import LocalBroker

from .lake import create, produce, produce_broken

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("connect"),
]

CLIENT = Path(__file__).with_name("connect_lander.py")
FORMATS = ("delta", "iceberg")
_numbers = itertools.count(1)


class Client:
    """A process with a session of Spark Connect."""

    def __init__(self, url: str, folder: Path) -> None:
        self.log = folder / f"client-{next(_numbers)}.log"
        with self.log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(CLIENT), url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(),
                text=True,
            )

    def ask(self, do: str, options: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do, "options": options}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.log.read_text()[-3000:]
        return json.loads(answer)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server with the Kafka connector, Delta and Iceberg."""
    pytest.importorskip("grpc")
    jars = ",".join(map(str, [*connector_jars(), *table_jars(FORMATS)]))
    with connect_server(tmp_path_factory.mktemp("server"), table_settings(FORMATS), "--jars", jars) as url:
        yield url


@pytest.fixture(scope="module")
def client(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    running = Client(server, tmp_path_factory.mktemp("client"))
    yield running
    running.close()


class Place:
    """A topic and a folder, and runs from one to the other."""

    def __init__(self, broker: LocalBroker, client: Client, out: Path, table_format: str) -> None:
        self.broker = broker
        self.client = client
        self.out = out
        self.topic = create(broker, f"connect-{next(_numbers)}", 2)
        self.options: dict[str, Any] = {
            "bootstrap_servers": broker.bootstrap_servers,
            "topics": [self.topic],
            "out": str(out),
            "to": table_format,
            "once": True,
            "max_records": 50,
        }

    def send(self, events: int, broken: int) -> None:
        produce(self.broker, self.topic, events)
        produce_broken(self.broker, self.topic, broken)

    def run(self, **options: Any) -> dict[str, Any]:
        done: dict[str, Any] = self.client.ask("run", {**self.options, **options})
        assert "summary" in done, done
        return done

    def check(self, done: dict[str, Any], events: int, quarantined: int) -> None:
        """Check that each record is in one of the tables, once, and that the summary has counted it."""
        total = done["summary"]["total"]
        assert (total["read"], total["events"], total["quarantined"]) == (
            events + quarantined,
            events,
            quarantined,
        )
        rows = self.client.ask("rows", self.options)
        assert len(rows["events"]) == events
        found = sorted(map(tuple, rows["events"] + rows.get("quarantine", [])))
        assert found == [(0, offset) for offset in range(events + quarantined)]


@pytest.fixture(params=FORMATS)
def place(request: pytest.FixtureRequest, client: Client, kafka_broker: LocalBroker, tmp_path: Path) -> Place:
    return Place(kafka_broker, client, tmp_path, request.param)


def test_each_record_lands_once(place: Place) -> None:
    """Each run lands what is new, counts it, and reports each batch; the topic's id is known."""
    place.send(60, 10)
    done = place.run()
    assert done["summary"]["batches"] == len(done["reports"]) == 2
    assert done["reports"][0].startswith("batch 0: 50 read = 50 events + 0 quarantined")
    assert done["summary"]["complete"]
    place.check(done, 60, 10)
    assert done["warnings"] == []
    assert place.run()["summary"]["batches"] == 0
