"""Pipelines are killed at random under load; afterwards each record is in each kind of table once.

All tables are typed, by schemas that change from start to start. One of them has a row for each subject
(``upsert``), and one leaves out what was sent twice (``deduplicate``).

    make soak SOAK_FLAGS="[--kills 50] [--seed N] [--rate 60]"

A broker, a thread that sends records all the time, and one program with a pipeline to each kind of table,
on a cluster of one executor while one is still to be killed. A kill hits the program, its Java alone, a
Python worker, the executor or the broker. A program that has ended is started again. When the rest has landed
it is stopped, and the tables are compared with the topic, by readers other than Spark.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.testing import LocalBroker
from tests.spark.cluster.spark_home import ROOT, descendants, environment

KINDS: Final = (
    *("parquet", "delta", "iceberg"),
    *("delta-upsert", "iceberg-upsert", "delta-distinct", "iceberg-distinct"),
)
VICTIMS: Final = ("driver", "java", "worker", "executor", "broker")
CLUSTER: Final = "local-cluster[1,2,1024]"
LOCAL: Final = "local[2]"
TOPIC: Final = "soak"
PARTITIONS: Final = 3
SECONDS: Final = 900  # for a batch to land, or a run to end: only what hangs takes longer
_DRIVER: Final = Path(__file__).with_name("soak_driver.py")
_MOST_ERRORS: Final = 6  # starts, one after another, that end with an error in words
_DIED: Final = (3, -signal.SIGKILL)  # exit codes: an error in words, or killed

Place = tuple[int, int]
"""The partition and the offset of a record."""


class Row(NamedTuple):
    """A row of a table: the id of its event, None in the quarantine; its value; and whether it is deleted."""

    id: str | None
    number: int | None = None
    deleted: bool = False


class Load(threading.Thread):
    """Sends records until `stop`; some need Python, and some are not events."""

    def __init__(self, servers: str, rate: float) -> None:
        super().__init__()
        # Records wait here while the broker is down, and are sent once.
        settings = {"enable.idempotence": True, "message.timeout.ms": 300_000, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": servers, **settings})
        self._rate = rate
        self._stop_asked = threading.Event()
        self.left = 0

    def run(self) -> None:
        number = 0
        while not self._stop_asked.wait(0.1):
            for _ in range(max(1, round(self._rate / 10))):
                record = _record(number)
                with suppress(BufferError):
                    self._producer.produce(
                        TOPIC,
                        key=str(number),
                        value=record.value,
                        headers=list(record.headers),
                        partition=number % PARTITIONS,
                    )
                    number += 1
            self._producer.poll(0)
        self.left = self._producer.flush(120)

    def stop(self) -> None:
        """Stop, after all records were sent."""
        self._stop_asked.set()
        self.join()
        assert self.left == 0


def _record(number: int) -> Record:
    data = None if _deletes(number) else {"n": "x" if number % 20 == 5 else number}
    parts: dict[str, Any] = {"subject": _subject(number), "datacontenttype": "application/json", "data": data}
    event = Event(id=_id(number), source="/soak", type=f"t{number % 3}", **parts)
    if not _is_event(number):
        return Record(value=b"{", headers=[("ce_id", b"1")])
    if number % 3 == 1 and not _deletes(number):  # so many that workers read some batches
        return to_record(event, mode="structured", format="protobuf")
    return to_record(event, mode="binary" if number % 2 else "structured")


def _is_event(number: int) -> bool:
    return number % 50 != 2


def _deletes(number: int) -> bool:
    """Return whether a record, which is in binary mode then, has no value."""
    return number % 50 == 7


def _fits(number: int) -> bool:
    """Return whether the data of an event has its schema, which those of the type t0 have."""
    return number % 3 != 0 or not (_deletes(number) or number % 20 == 5)


def _subject(number: int) -> str:
    return f"s{number % (33 * PARTITIONS)}"  # always in one partition


def _id(number: int) -> str:
    """Return the id of an event; some are sent twice."""
    return str(number - PARTITIONS if number % 10 == 9 and number > PARTITIONS else number)


def _row(number: int, *, upsert: bool) -> Row:
    """Return the row of a record."""
    if not _is_event(number) or not (_fits(number) or (upsert and _deletes(number))):
        return Row(None)
    is_typed = number % 3 == 0 and not _deletes(number)
    return Row(_id(number), number if is_typed else None, upsert and _deletes(number))


def expected_rows(kind: str, records: Iterable[tuple[Place, int]]) -> dict[Place, Row]:
    """Return the rows of a kind of table, and of its quarantine, for the records of a topic."""
    upsert, rows = kind.endswith("-upsert"), dict[Place, Row]()
    last: dict[str, Place] = {}
    for place, number in sorted(records):
        row = _row(number, upsert=upsert)
        key = (_subject(number) if upsert else row.id) if row.id is not None else None
        if key in last and upsert:
            del rows[last[key]]
        if key in last and kind.endswith("-distinct"):
            continue
        rows[place] = row
        if key is not None:
            last[key] = place
    return rows


class Soak:
    """Kills and starts; ``output`` has the lines of all programs."""

    def __init__(
        self,
        broker: LocalBroker,
        folder: Path,
        seed: int,
        rate: float,
        most_batches: int,
        kinds: Sequence[str] = KINDS,
    ) -> None:
        self.broker = broker
        self.kinds = kinds
        self.folder = folder
        self.killed: Counter[str] = Counter()
        self.starts = 0
        self.output: list[str] = []
        self._errors: list[str] = []  # the errors in words of the last starts
        self._chance = random.Random(seed)
        self._most_batches = most_batches
        self._master = LOCAL
        self._process: subprocess.Popen[str] | None = None
        self._java: set[int] = set()
        self._reader: threading.Thread | None = None
        self._environment = {
            **environment(folder),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        broker.create_topic(TOPIC, partitions=PARTITIONS)
        self._load = Load(broker.bootstrap_servers, rate)

    def kill_many(self, victims: Iterable[str]) -> None:
        """Kill one after another while records are sent."""
        self._load.start()
        try:
            left = list(victims)
            while left:
                self._master = CLUSTER if "executor" in left else LOCAL  # of the next start
                victim = left.pop(0)
                self._await_batches(self._chance.randint(1, self._most_batches))
                time.sleep(self._chance.random())
                self._kill(victim)
        finally:
            self._load.stop()

    def land_on_cluster(self, batches: int) -> None:
        """Send records on a cluster until so many batches have landed."""
        self._master = CLUSTER
        self._load.start()
        try:
            self._await_batches(batches)
        finally:
            self._load.stop()

    def _kill(self, victim: str) -> None:
        if victim == "broker":
            self.broker.kill()
            time.sleep(self._chance.random())
            self.broker.start()
        elif victim == "driver":
            self._running.kill()
        else:
            found: list[int] = []
            deadline = time.monotonic() + SECONDS
            while not found:
                self._await_batches(0)
                found = self._processes(victim)
                assert time.monotonic() < deadline, f"there is no {victim} to kill"
            chosen = self._chance.choice(found)
            # Java goes on with the workers of a daemon that is killed alone, where no search finds them.
            kill_all([chosen, *(descendants(chosen, "") if victim == "worker" else [])])
        self.killed[victim] += 1
        _say(f"kill {self.killed.total()}: {victim}; {self._landed():,} batches have landed")

    def _processes(self, victim: str) -> list[int]:
        names = {
            "java": "SparkSubmit",
            "worker": "pyspark.daemon",
            "executor": "CoarseGrainedExecutorBackend",
        }
        return descendants(self._running.pid, names[victim])

    @property
    def _running(self) -> subprocess.Popen[str]:
        """The program, started again if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._start()
        assert self._process is not None
        return self._process

    def _start(self) -> None:
        self.starts += 1
        argv = [sys.executable, str(_DRIVER), self.broker.bootstrap_servers, TOPIC, str(self.folder)]
        # In a folder of its own: a killed Spark leaves files where it runs.
        process = subprocess.Popen(
            [*argv, self._master, *self.kinds],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self._environment,
        )
        assert process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(process.stdout,))
        self._reader.start()
        self._process = process

    def _read(self, lines: Any) -> None:
        with lines:
            for line in lines:
                self.output.append(line.rstrip())

    def _end(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        assert self._process is not None
        assert self._reader is not None
        code = self._process.wait(SECONDS)
        self._reader.join(SECONDS)  # after Java has ended, too, which has the same output
        assert code in (0, *_DIED), self._recent()
        assert "Traceback" not in self._recent(), self._recent()
        self._errors = [*self._errors, self.output[-1]] if code == _DIED[0] else []
        # The next start must go on, at the latest when the broker is there again.
        assert len(self._errors) < _MOST_ERRORS, "\n".join(self._errors)
        self._process = None
        return code

    def _await_batches(self, count: int) -> None:
        """Wait until so many more batches have landed."""
        deadline = time.monotonic() + SECONDS
        goal = self._landed() + count
        while self._landed() < goal:
            _ = self._running
            assert time.monotonic() < deadline, self._recent()
            time.sleep(0.05)

    def _recent(self) -> str:
        return "\n".join(self.output[-60:])

    def _landed(self) -> int:
        return sum(" batch " in line for line in self.output[-100_000:])

    def finish(self) -> None:
        """Wait until all records have landed, as long as that goes on, and stop the program."""
        expected = len(self.kinds) * sum(1 for _ in topic_rows(self.broker.bootstrap_servers))
        landed, deadline = -1, 0.0
        while (now := sum(map(self._records_landed, self.kinds))) < expected:
            if now > landed:  # after many kills minutes of work may be left
                landed, deadline = now, time.monotonic() + SECONDS
            _ = self._running
            assert time.monotonic() < deadline, self._recent()
            time.sleep(0.2)
        (self.folder / "stop").touch()
        for _ in range(2):  # the program may not have ended yet after the last kill
            _ = self._running
            if self._end() == 0:
                return
        raise AssertionError(self._recent())

    def _records_landed(self, kind: str) -> int:
        """Return the number of records in the last manifest."""
        manifests = (self.folder / kind / "_batches").glob("[0-9]*.json")
        last = max(manifests, default=None)
        return 0 if last is None else int(json.loads(last.read_text())["total"]["read"])

    def stop(self) -> None:
        """Kill the program, and what it has started."""
        if self._process is None:
            return
        kill_all([self._process.pid, *descendants(self._process.pid, "")])
        self._end()

    def check(self) -> int:
        """Check that each kind of table has each record once; return the number of records."""
        records = dict(topic_rows(self.broker.bootstrap_servers))
        for kind in self.kinds:
            events, quarantine = (
                rows_of(kind, self.folder / kind / name) for name in ("events", "quarantine")
            )
            expected = expected_rows(kind, records.items())
            found = [*events, *((place, Row(None)) for place, _ in quarantine)]
            twice = [place for place, count in Counter(place for place, _ in found).items() if count > 1]
            assert not twice, f"{kind}: {len(twice)} records are there twice, such as {twice[:5]}"
            missing = sorted(expected.keys() - dict(found).keys())
            assert not missing, f"{kind}: {len(missing)} records are missing, such as {missing[:5]}"
            assert dict(found) == expected, kind
        return len(records)


def kill_all(processes: Iterable[int]) -> None:
    """Kill processes, of which some may have ended."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def topic_rows(servers: str) -> Iterator[tuple[Place, int]]:
    """Yield the place and the number of all records of the topic."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "soak", "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            for message in consumer.consume(1000, timeout=1):
                if message.error() is not None:
                    ended.add(message.partition())
                    continue
                yield (message.partition(), message.offset()), int(message.key())
    finally:
        consumer.close()


def rows_of(kind: str, folder: Path) -> list[tuple[Place, Row]]:
    """Return the places of all rows of a table, and what they have, read without Spark."""
    if not folder.exists():
        return []
    columns = ["partition", "offset"]
    if folder.name == "events":
        columns += ["id", "value", *(["deleted"] if kind.endswith("-upsert") else [])]
    rows = (row for table in _read(kind, folder, columns) for row in table.to_pylist())
    return [((row["partition"], row["offset"]), _row_of(row)) for row in rows]


def _row_of(row: dict[str, Any]) -> Row:
    value = row.get("value")
    return Row(row.get("id"), None if value is None else value["n"], bool(row.get("deleted")))


def _read(kind: str, folder: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the columns of a table, file by file where readers do not join what schemas have changed."""
    import pyarrow.parquet as pq

    if kind == "parquet":
        yield from (pq.ParquetFile(file).read(columns) for file in folder.rglob("*.parquet"))
        return
    if kind.startswith("delta"):
        import deltalake

        files = deltalake.DeltaTable(folder).file_uris()
        yield from (pq.ParquetFile(file.removeprefix("file://")).read(columns) for file in files)
        return
    from pyiceberg.table import StaticTable

    version = (folder / "metadata" / "version-hint.text").read_text().strip()
    table = StaticTable.from_metadata(f"file://{folder}/metadata/v{version}.metadata.json")
    yield table.scan(selected_fields=tuple(columns)).to_arrow()


def victims_of(kills: int, seed: int) -> list[str]:
    """Return whom to kill: each kind as often as the others, in random order.

    Where each is killed once, the executor is the first: the starts after it need no cluster.
    """
    chance = random.Random(seed)
    order = chance.sample(VICTIMS, len(VICTIMS))
    victims = [order[number % len(order)] for number in range(kills)]
    chance.shuffle(victims)
    if kills == len(VICTIMS):
        victims.sort(key=lambda victim: victim != "executor")  # the starts after it need no cluster
    return victims


def kinds_of(seed: int) -> Sequence[str]:
    """Return a kind of each format; by the seed two of them have rows by key, or no duplicates."""
    more = ("", "-upsert", "-distinct")
    return ("parquet", f"delta{more[seed % 3]}", f"iceberg{more[(seed + 1) % 3]}")


def run(kills: int, seed: int, rate: float, most_batches: int = 3, *, kinds: Sequence[str] = KINDS) -> None:
    """Kill and start, land the rest, compare the tables with the topic, and print what happened.

    At most so many batches land before each kill, in each of these kinds of tables.
    """
    _say(f"{kills} kills, --seed {seed}")
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, LocalBroker() as broker:
        soak = Soak(broker, Path(folder), seed, rate, most_batches, kinds)
        try:
            soak.kill_many(victims_of(kills, seed))
            soak.finish()
        finally:
            soak.stop()
        records = soak.check()
    killed = ", ".join(f"{victim} {count}" for victim, count in sorted(soak.killed.items()))
    _say(f"killed: {killed}; {soak.starts} starts, {time.monotonic() - start:.0f} s")
    _say(f"each of {records:,} records is once in {', '.join(kinds)}")


def run_on_cluster(kinds: Sequence[str] = KINDS) -> None:
    """Land some batches on a cluster by a single start, and compare the tables with the topic."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, LocalBroker() as broker:
        soak = Soak(broker, Path(folder), seed=0, rate=50, most_batches=1, kinds=kinds)
        try:
            soak.land_on_cluster(2 * len(kinds))
            soak.finish()
        finally:
            soak.stop()
        soak.check()
    assert soak.starts == 1, soak.output


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="of all that is random")
    parser.add_argument("--rate", type=float, default=60, help="of records sent in a second")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, help="of tables; by default three of a seed")
    options = parser.parse_args()
    run(options.kills, options.seed, options.rate, kinds=options.kinds or kinds_of(options.seed))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
