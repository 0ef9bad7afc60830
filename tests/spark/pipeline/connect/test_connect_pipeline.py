"""A pipeline on Spark Connect lands in Delta, each record once."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient

from cloudevents_kafka import Event, to_record
from cloudevents_kafka.spark.connector import connector_jars
from cloudevents_kafka.spark.table_formats import table_jars, table_settings
from cloudevents_kafka.testing import LocalBroker
from tests.spark.cluster.spark_home import environment as bare_environment
from tests.spark.java.connect_server import ROOT, connect_server, environment
from tests.spark.pipeline.lake import create, produce, produce_broken
from tests.spark.pipeline.pages import CONNECT_PAGE, spark_blocks

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

CLIENT = Path(__file__).with_name("connect_lander.py")
FORMATS = ("delta",)
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

    def send(self, do: str, options: dict[str, Any] | str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, "options": options}) + "\n")
        self.process.stdin.flush()

    def ask(self, do: str, options: dict[str, Any] | str) -> Any:
        self.send(do, options)
        return self.answer()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        answer = self.process.stdout.readline()
        assert answer, self.log.read_text()[-3000:]
        return json.loads(answer)

    def wait_for_batches(self, count: int) -> None:
        """Wait until a run has reported batches, or its end."""
        deadline = time.monotonic() + 100
        while self.log.read_text().count("batch ") < count and time.monotonic() < deadline:
            assert self.process.poll() is None
            time.sleep(0.01)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def bare(folder: Path) -> dict[str, str]:
    """Return an environment for a server whose Python does not have this package."""
    (folder / "bare").mkdir()
    return bare_environment(folder / "bare")


@contextmanager
def new_server(folder: Path, variables: Mapping[str, str] | None = None) -> Iterator[tuple[str, Path]]:
    """Start a server with the Kafka connector and Delta."""
    folder.mkdir()
    jars = ",".join(map(str, [*connector_jars(), *table_jars(FORMATS)]))
    settings = {**table_settings(FORMATS), "spark.sql.shuffle.partitions": "2"}
    with connect_server(folder, settings, "--jars", jars, variables=variables) as url:
        yield url, folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("grpc")
    with new_server(tmp_path_factory.mktemp("connect") / "server") as (url, _):
        yield url


@pytest.fixture(scope="module")
def client(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    running = Client(server, tmp_path_factory.mktemp("client"))
    yield running
    running.close()


class Place:
    """A topic and a folder, and runs from one to the other."""

    def __init__(self, broker: LocalBroker, client: Client, out: Path) -> None:
        self.broker = broker
        self.client = client
        self.out = out
        self.topic = create(broker, f"connect-{next(_numbers)}", 2)
        self.options: dict[str, Any] = {
            "bootstrap_servers": broker.bootstrap_servers,
            "topics": [self.topic],
            "out": str(out),
            "to": "delta",
            "once": True,
            "max_records": 50,
        }
        out.mkdir(exist_ok=True)

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


@pytest.fixture
def place(client: Client, kafka_broker: LocalBroker, tmp_path: Path) -> Place:
    return Place(kafka_broker, client, tmp_path)


@pytest.mark.release  # test_example is its sample
def test_each_record_lands_once(place: Place) -> None:
    """Each run lands what is new, counts it, and reports each batch; a run without records lands nothing."""
    place.send(60, 10)
    done = place.run()
    assert done["summary"]["batches"] == len(done["reports"]) == 2
    assert done["reports"][0].startswith("batch 0: 50 read = 50 events + 0 quarantined")
    assert done["summary"]["complete"]
    assert done["warnings"] == []
    place.check(done, 60, 10)
    assert place.run()["summary"]["batches"] == 0


@pytest.mark.release  # test_example is its sample
def test_errors_of_the_server(place: Place) -> None:
    """An error that is raised on the server has its class and its words at the client."""
    place.send(1, 0)
    place.client.ask("sql", f"CREATE TABLE delta.`{place.out}/events` (id int) USING delta")
    failed = place.client.ask("run", place.options)
    assert failed["error"] == "WrongTable"
    assert "the column id of the table file://" in failed["text"]


@pytest.mark.release
def test_watched(place: Place, tmp_path: Path) -> None:
    """The client writes what the server has counted, shows the lag in a group, and ends by a threshold."""
    place.send(60, 10)
    lines, group = tmp_path / "lines.jsonl", f"lag-of-{place.topic}"
    place.run(metrics_file=str(lines), group=group)
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [line["records"] for line in written] == [50, 20]
    assert written[1]["events"] == {"t": 10}
    assert written[1]["quarantined_records"] == {"not-an-event/": 10}
    assert written[1]["step_seconds"].keys() == {"plan", "check", "write", "commit", "checkpoint"}
    assert written[1]["lag_records"] == {f"{place.topic}/0": 0, f"{place.topic}/1": 0}
    admin = AdminClient({"bootstrap.servers": place.broker.bootstrap_servers})
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    assert {found.partition: found.offset for found in future.result(20).topic_partitions} == {0: 70, 1: 0}
    place.send(0, 10)
    ending = {"figure": "quarantine", "above": 0.5, "records": 10, "action": "end"}
    failed = place.client.ask("run", {**place.options, "thresholds": [ending]})
    assert failed["error"] == "ThresholdCrossed"
    assert "has 100.0% of the last 10 records in the quarantine" in failed["text"]
    refused = place.client.ask("run", {**place.options, "thresholds": [{**ending, "action": "stop"}]})
    assert refused["error"] == "NotOnConnect"
    assert "thresholds must warn or end the run on Spark Connect" in refused["text"]
    place.check(place.run(), 60, 20)


def test_example(server: str, place: Place, tmp_path: Path) -> None:
    """The example lands the three events of another one."""
    for name, *arguments in (
        ("emit.py", place.options["bootstrap_servers"], place.topic),
        (
            "spark/land_connect.py",
            server,
            place.options["bootstrap_servers"],
            place.topic,
            str(tmp_path),
        ),
    ):
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / name), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
            env=environment(),
        )
        assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-2:] == ["3 events, 0 quarantined", f"in file://{tmp_path}/events"]


@pytest.mark.release  # test_example is its sample
def test_page(server: str, place: Place, tmp_path: Path) -> None:
    """The Python blocks of the page about Spark Connect run, one after the other."""
    place.send(3, 0)
    code = "\n".join(spark_blocks(CONNECT_PAGE)).replace("sc://localhost:15002", server)
    code = code.replace("localhost:9092", place.options["bootstrap_servers"])
    code = code.replace('"orders"', f'"{place.topic}"').replace("/data/lake", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == f"3 events in file://{tmp_path}/events"


@pytest.mark.release
def test_docstrings(server: str) -> None:
    """Each example with a session of Spark Connect prints what the docstring says."""
    code = (
        "import sys\n"
        "from tests.support import docstrings\n"
        "for doc in docstrings.with_examples():\n"
        "    if doc.needs == 'Connect':\n"
        "        docstrings.run(doc, connect=sys.argv[1])\n"
        "        print(doc.name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, server],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env=environment(),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["NotOnConnect"]


@pytest.mark.release
def test_deduplicate(place: Place) -> None:
    """Duplicates do not land on the server, too; changes of rows by key are refused."""
    place.send(20, 1)
    assert place.run(deduplicate="1h")["summary"]["tally"]["duplicates"] == 0
    place.send(20, 1)
    done = place.run(deduplicate="1h")["summary"]
    assert (done["tally"]["duplicates"], done["total"]["events"], done["total"]["quarantined"]) == (20, 20, 2)
    refused = place.client.ask("run", {**place.options, "upsert": ["id"]})
    assert refused["error"] == "NotOnConnect"
    assert "upsert must be empty on Spark Connect, got id" in refused["text"]


@pytest.mark.release
def test_data_by_schemas(place: Place) -> None:
    """Data lands by its schema on the server, misfits are set aside, also after a change of a type."""
    place.send(20, 1)  # with data that is not an object
    producer = Producer({"bootstrap.servers": place.broker.bootstrap_servers})
    for payload in (b'{"total": 1}', b'{"total": "x"}'):
        event = Event(id="1", source="/s", type="t", datacontenttype="application/json", data=payload)
        record = to_record(event, mode="binary")
        producer.produce(place.topic, record.value, headers=list(record.headers))
    assert producer.flush(30) == 0
    done = place.run(schemas={"t": "total INT NOT NULL"})
    assert done["warnings"] == []
    total = done["summary"]["total"]
    assert (total["read"], total["events"]) == (23, 1)
    assert total["by_reason"]["broken-data"] == {
        "data: it must be an object": 20,
        "data: /total must be an integer of 32 bits": 1,
    }
    produce(place.broker, place.topic, 3)
    done = place.run(schemas={"t": "total STRING"})
    assert "which has value.total int" in done["warnings"][0]
    assert done["summary"]["total"]["quarantined"] == 25


@pytest.mark.release
def test_iceberg_is_refused(place: Place) -> None:
    """Iceberg needs a session with Java, and the error says so."""
    failed = place.client.ask("run", {**place.options, "to": "iceberg"})
    assert failed["error"] == "NotOnConnect"
    assert "to must be delta on Spark Connect, got iceberg" in failed["text"]


@pytest.mark.release
@pytest.mark.timeout(900)
def test_batches_of_a_table(client: Client, tmp_path: Path) -> None:
    """A repeated batch is recognised, another pipeline's is refused, and one of two commits succeeds."""
    table = {"url": f"file://{tmp_path}/events", "pipeline": "p0"}
    for taken in (True, False):
        for number in range(4):
            batch = {"start": 2 * number, "end": 2 * number + 2}
            assert client.ask("append", {**table, **batch}) is taken
    refused = client.ask("append", {**table, "start": 6, "end": 10, "pipeline": "p1"})
    assert "WrongTable: pipeline p1 must not land orders[0]@6 to 7" in refused
    assert client.ask("race", table) == ["committed", "LedgerChanged"]
    client.ask("sql", f"OPTIMIZE delta.`{table['url']}`")
    assert client.ask("append", {**table, "start": 6, "end": 8}) is False


@pytest.mark.release
@pytest.mark.timeout(900)
def test_server_without_the_package(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """The server's Python takes the client's package, also for records that Python decodes."""
    with (
        new_server(tmp_path / "server", bare(tmp_path)) as (url, _),
        closing(Client(url, tmp_path)) as client,
    ):
        place = Place(kafka_broker, client, tmp_path / "out")
        place.send(10, 5)
        place.check(place.run(), 10, 5)


@pytest.mark.release
@pytest.mark.timeout(900)
def test_continued_without_connect(place: Place) -> None:
    """A session with Java refuses a table that is filled through Spark Connect, and the reverse."""
    call = "from cloudevents_kafka.cli import main; main()"
    servers = place.options["bootstrap_servers"]
    command = [
        sys.executable,
        "-c",
        call,
        "pipeline",
        "-b",
        servers,
        "-t",
        place.topic,
        "--to",
        "delta",
        "--once",
    ]
    place.send(9, 1)
    place.run()
    refused = subprocess.run(
        [*command, "-o", str(place.out)], check=False, capture_output=True, text=True, timeout=200
    )
    assert refused.returncode == 2
    assert "must be landed in through Spark Connect, as before" in refused.stderr
    place.check(place.run(), 9, 1)
    place.options["out"] = f"{place.out}/other"
    subprocess.run([*command, "-o", place.options["out"]], check=True, capture_output=True, timeout=200)
    failed = place.client.ask("run", place.options)
    assert failed["error"] == "WrongTable"
    assert "must be landed in by a session with Java, as before" in failed["text"]


@pytest.mark.release
@pytest.mark.timeout(900)
def test_table_of_a_catalog(place: Place) -> None:
    """Events land in a named table, and the other records in the table next to it."""
    name = f"spark_catalog.default.{place.topic.replace('-', '_')}"
    place.options["table"] = name
    place.send(5, 1)
    done = place.run()
    assert done["summary"]["events_table"] == name
    place.check(done, 5, 1)


# --- kills ---


def children(process: int) -> dict[int, str]:
    """Return the processes below another one, with their commands."""
    found: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == process:
                found[int(path.name)] = (path / "cmdline").read_text()
    return found


def server_process(folder: Path) -> int:
    """Return the Java process of a server."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (path / "cmdline").read_text()
            if str(folder / "spark.properties") in command and "SparkSubmit" in command:
                return int(path.name)
    raise AssertionError(folder)


def kill_function(folder: Path) -> None:
    """Kill the processes that land batches on a server."""
    for process, command in children(server_process(folder)).items():
        if "foreach_batch" in command:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@pytest.mark.release
@pytest.mark.timeout(900)
def test_kills(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """Clients, functions and servers are killed at random; the next start continues, at once."""
    chance = random.Random(11)
    topic = create(kafka_broker, "connect-kills", 2)
    records = 0
    with ExitStack() as servers:
        url, folder = servers.enter_context(new_server(tmp_path / "0"))
        place = Place(kafka_broker, Client(url, tmp_path), tmp_path / "out")
        place.topic, place.options["topics"] = topic, [topic]
        place.options["max_records"] = 10
        for number, victim in enumerate(["client", "function", "client and function", "server"] * 3):
            place.send(36, 4)
            records += 40
            place.client.send("run", place.options)
            place.client.wait_for_batches(1)
            time.sleep(chance.random() * 3)
            if victim == "function":
                kill_function(folder)
                place.client.answer()  # the error, or the summary if it was between two batches
            if victim == "client and function":  # the server goes on with what they have asked for
                place.client.close()
                kill_function(folder)
            if victim == "server":
                os.kill(server_process(folder), signal.SIGKILL)
                url, folder = servers.enter_context(new_server(tmp_path / str(number + 1)))
            place.client.close()
            place.client = Client(url, tmp_path)
        place.check(place.run(), records // 10 * 9, records // 10)
        place.client.close()
