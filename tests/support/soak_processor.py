"""An EventProcessor is killed at random under load; afterwards each event is in its target topic once.

    make soak SOAK_FLAGS="[--kills 200] [--seed N] [--rate 300]"

`make soak` runs this, and tests/spark/pipeline/soak.py, with the same flags.

A broker, a thread that sends events all the time, and two processes of one group, each with an
`EventProcessor` from one topic to another. A kill hits one of the processes, or the broker. A process
that has ended is started again. One event in a hundred always fails, some after they were sent, and becomes
a dead letter in the target. At the end the processes forward the rest, and the target is compared with the
source as a consumer reads it that sees committed transactions only: each event is there once, as itself or
as a letter.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import random
import secrets
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import (
    DeadLetter,
    DeadLetters,
    Decoded,
    Event,
    EventConsumer,
    EventProcessor,
    EventProducer,
    Record,
    TransactionError,
    to_record,
)
from cloudevents_kafka.protocol.records import Batches, RecordBatch
from cloudevents_kafka.protocol.records import Record as LoggedRecord
from cloudevents_kafka.protocol.records.record import COMMIT
from cloudevents_kafka.testing import LocalBroker

SOURCE: Final = "orders"
TARGET: Final = "copies"
PARTITIONS: Final = 4
BATCH: Final = 100
BAD: Final = 7  # the last two digits of the events that fail
NAMES: Final = ("a", "b")
VICTIMS: Final = ("a", "b", "broker", "b", "a")
SECONDS: Final = 120  # for progress after a kill
_BROKEN: Final = 3  # the exit code of a process that cannot go on


def process(servers: str, name: str) -> int:
    """Forward all records with one transactional id, until SIGTERM; each line of output is a batch."""
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "soak",
            "session.timeout.ms": 2000,  # after which the other process takes the partitions of a killed one
            "heartbeat.interval.ms": 500,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    reader.subscribe([SOURCE])
    writer = Producer(
        {"bootstrap.servers": servers, "transactional.id": f"soak-{name}", "linger.ms": 5, "log_level": 0}
    )
    events, producer = EventConsumer(reader), EventProducer(writer, topic=TARGET)
    chance = random.Random()

    def forward(item: Decoded) -> None:
        if chance.random() < 0.001:
            time.sleep(0.02)
        number = int(item.record.key or b"")
        if number % 200 != BAD:
            producer.send_record(item.record)
        if number % 100 == BAD:
            raise ValueError("this event fails")

    logging.basicConfig(stream=sys.stdout, format="%(asctime)s %(message)s")
    faulthandler.register(signal.SIGUSR1, file=sys.stdout)
    letters = DeadLetters(producer, topic=TARGET)
    processor = EventProcessor(
        events,
        producer,
        forward,
        max_records=BATCH,
        timeout=3,
        on_failure=letters,
        tries=20,
        backoff=0.01,
        retry_on=(),
    )
    signal.signal(signal.SIGTERM, lambda *_: processor.stop())
    say("started")
    try:
        with events:
            processor.run()
    except TransactionError as error:
        say(str(error))
        return _BROKEN
    return 0


class Load(threading.Thread):
    """Sends events until `stop`, each once: while the broker is down they wait in the client."""

    def __init__(self, servers: str, rate: float) -> None:
        super().__init__()
        settings = {"enable.idempotence": True, "message.timeout.ms": 300_000, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": servers, **settings})
        self._rate = rate
        self._stop_asked = threading.Event()
        self.sent = 0

    def run(self) -> None:
        while not self._stop_asked.wait(0.05):
            for _ in range(max(1, round(self._rate / 20))):
                record = to_record(Event(id=str(self.sent), source="/soak", type="t"))
                with suppress(BufferError):
                    self._producer.produce(SOURCE, key=str(self.sent), headers=list(record.headers))
                    self.sent += 1
            self._producer.poll(0)

    def stop(self) -> None:
        """Stop, after all events were sent."""
        self._stop_asked.set()
        self.join()
        assert self._producer.flush(120) == 0


class Soak:
    """Kills and starts processes and the broker."""

    def __init__(self, broker: LocalBroker, seed: int, rate: float) -> None:
        self.broker = broker
        self.killed: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()
        self.output: list[str] = []
        self._chance = random.Random(seed)
        for topic in (SOURCE, TARGET):
            broker.create_topic(topic, partitions=PARTITIONS)
        self._load = Load(broker.bootstrap_servers, rate)
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._reader = Tail(broker.bootstrap_servers)

    def kill_many(self, kills: int) -> None:
        """Kill one after another while events are sent, each after some of them were forwarded."""
        self._load.start()
        try:
            for number in range(kills):
                victim = VICTIMS[number % len(VICTIMS)]
                self._await(self._reader.count + 1)
                time.sleep(self._chance.random() / 2)
                self._kill(victim)
        finally:
            self._load.stop()

    def _kill(self, victim: str) -> None:
        if victim == "broker":
            self.broker.kill()
            time.sleep(self._chance.random() / 2)
            self.broker.start()
        else:
            self._processes[victim].kill()
        self.killed[victim] += 1

    def _await(self, count: int) -> None:
        """Wait until the target has so many events, with all processes running."""
        deadline = time.monotonic() + SECONDS
        while self._reader.read() < count:
            self._start_ended()
            if time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"{self._reader.count} of {count} events\n{self.recent()}")

    def _start_ended(self) -> None:
        for name in NAMES:
            process = self._processes.get(name)
            if process is not None and process.poll() is not None:
                self.output += [f"{name}: {line}" for line in process.communicate()[0].splitlines()]
                assert process.returncode in (-signal.SIGKILL, _BROKEN), self.recent()
                self.output.append(f"{name}: exit code {process.returncode}")
            if process is None or process.returncode is not None:
                self.starts[name] += 1
                self._processes[name] = subprocess.Popen(
                    [sys.executable, __file__, "--process", name, self.broker.bootstrap_servers],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )

    def recent(self) -> str:
        return "\n".join(self.output[-40:])

    def finish(self) -> None:
        """Forward the rest, and end the processes as a service manager does."""
        self._await(self._load.sent)
        for name, process in self._processes.items():
            process.terminate()
            output, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == 0, f"{name}: {process.returncode}: {output}"

    def stop(self) -> None:
        """Kill what runs."""
        self._reader.close()
        for name, process in self._processes.items():
            if process.stdout is None or process.stdout.closed:
                continue
            if process.poll() is None:
                process.send_signal(signal.SIGUSR1)  # which prints where it is
                time.sleep(0.1)
                process.kill()
            self.output += [f"{name}: {line}" for line in process.communicate()[0].splitlines()]

    def check(self) -> int:
        """Check that each event is in the target once, as itself or as a letter; return how many."""
        messages = list(read(self.broker.bootstrap_servers, TARGET))
        found = Counter(int(message.key()) for message in messages)
        for message in messages:
            is_letter = DeadLetter.of(Record.of(message)) is not None
            number = int(message.key())
            assert is_letter == (number % 100 == BAD), f"{number}: a letter must be there for it alone"
        twice = {number for number, count in found.items() if count > 1}
        if twice:  # the log of the broker shows which of them are a defect of its own
            repeated = twice & self._repeated_by_the_broker(twice)
            say(f"{len(repeated)} events are there twice: the broker kept their data, and lost their offsets")
            twice -= repeated
        assert not twice, f"{len(twice)} events are there twice, such as {sorted(twice)[:5]}\n{self.recent()}"
        missing = sorted(set(range(self._load.sent)) - found.keys())
        assert not missing, f"{len(missing)} events are missing, such as {missing[:5]}\n{self.recent()}"
        assert len(found) == self._load.sent
        return self._load.sent

    def _repeated_by_the_broker(self, twice: set[int]) -> set[int]:
        """Return the events of which one copy, at most, has offsets that the broker has committed."""
        copies, offsets = committed_copies(self.broker.folder), committed_offsets(self.broker.folder)
        places = {
            int(message.key()): (message.partition(), message.offset())
            for message in read(self.broker.bootstrap_servers, SOURCE)
            if int(message.key()) in twice
        }
        return {
            number
            for number, place in places.items()
            if sum(_is_covered(place, offsets[producer]) for producer in copies[number]) <= 1
        }


Transaction = tuple[int, int]
"""The id and the epoch of a producer, which librdkafka keeps until a transaction is aborted."""


def committed_copies(folder: Path) -> dict[int, list[Transaction]]:
    """Return who has written the committed copies of each event, from the broker's log of the target."""
    copies = defaultdict(list)
    for producer, records in _committed(folder, TARGET):
        for record in records:
            copies[int(record.key or b"")].append(producer)
    return copies


def committed_offsets(folder: Path) -> dict[Transaction, set[tuple[int, int]]]:
    """Return the partitions and offsets that each producer has committed, from the broker's log.

    A broker (Kafka 4.3.1) that is killed when it has marked the data of a transaction as committed may
    end the transaction, after its start, without marking the offsets: then the group reads the records
    again, although their copies are committed, and no client can know it.
    """
    offsets = defaultdict(set)
    for producer, records in _committed(folder, "__consumer_offsets"):
        offsets[producer].update(map(_place, records))
    return offsets


def _committed(folder: Path, topic: str) -> Iterator[tuple[Transaction, list[LoggedRecord]]]:
    """Yield the records of the transactions of a topic that have a commit marker there."""
    for partition in sorted(folder.glob(f"data/{topic}-*")):
        pending: dict[Transaction, list[LoggedRecord]] = defaultdict(list)
        for file in sorted(partition.glob("*.log")):
            for batch in Batches(file.read_bytes()):
                if not isinstance(batch, RecordBatch) or not batch.is_transactional:
                    continue
                producer, marker = (batch.producer_id, batch.producer_epoch), batch.control_record()
                if marker is None:
                    pending[producer] += batch
                else:
                    records = pending.pop(producer, [])
                    if marker.type == COMMIT:
                        yield producer, records


def _is_covered(place: tuple[int, int], offsets: set[tuple[int, int]]) -> bool:
    """Return whether one of the offsets is that after a batch with the record at a place."""
    partition, offset = place
    return any((partition, offset + number) in offsets for number in range(1, BATCH + 1))


def _place(record: LoggedRecord) -> tuple[int, int]:
    """Return the partition and the offset of a record of __consumer_offsets."""
    (partition,) = struct.unpack(">i", (record.key or b"")[-4:])
    (offset,) = struct.unpack_from(">q", record.value or b"", 2)
    return partition, offset


class Tail:
    """Counts the committed events of the target as they arrive, each once."""

    def __init__(self, servers: str) -> None:
        self._consumer = assigned(servers, TARGET)
        self._seen: set[bytes] = set()

    @property
    def count(self) -> int:
        return len(self._seen)

    def read(self) -> int:
        messages = self._consumer.consume(1000, timeout=0.1)
        self._seen.update(message.key() for message in messages if message.error() is None)
        return self.count

    def close(self) -> None:
        self._consumer.close()


def assigned(servers: str, topic: str) -> Consumer:
    """Return a consumer of a topic from its start, which reads committed transactions only."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "soak-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    return consumer


def read(servers: str, topic: str) -> Iterator[Any]:
    """Yield the messages of all records of a topic."""
    consumer = assigned(servers, topic)
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(1000, timeout=1):
            if message.error() is None:
                yield message
            else:
                ended.add(message.partition())
    consumer.close()


def run(kills: int, seed: int, rate: float) -> None:
    """Kill and start, forward the rest, compare the topics, and print what happened."""
    say(f"{kills} kills, --seed {seed}")
    start = time.monotonic()
    quick = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}
    with LocalBroker(properties=quick) as broker:
        soak = Soak(broker, seed, rate)
        try:
            soak.kill_many(kills)
            soak.finish()
            events = soak.check()
        finally:
            soak.stop()
    killed = ", ".join(f"{victim} {count}" for victim, count in sorted(soak.killed.items()))
    say(f"killed: {killed}; {soak.starts.total()} starts, {time.monotonic() - start:.0f} s")
    broken = sum(line.endswith(f"exit code {_BROKEN}") for line in soak.output)
    aborted = sum("was aborted" in line for line in soak.output)
    say(f"each of {events:,} events was forwarded once, or has one letter")
    say(f"{aborted} transactions were aborted and repeated; {broken} processes ended with a TransactionError")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="of all that is random")
    parser.add_argument("--rate", type=float, default=300, help="of events sent in a second")
    parser.add_argument("--process", nargs=2, metavar=("NAME", "SERVERS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process is not None:
        name, servers = options.process
        return process(servers, name)
    run(options.kills, options.seed, options.rate)
    return 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
