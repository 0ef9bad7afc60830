"""Three members of a group handle events under load, through signals, kills and an outage of the broker.

    python -m tests.support.load [--events 10000] [--seed N] [--only NAME...]

`make soak` runs it first.

A combination is a loop (`run` of threads or of asyncio, or a processor), a client, and a protocol of groups.
A member gets SIGTERM or SIGKILL every few seconds, and another one takes its place at once; the broker is
stopped and started once, and killed once. There are 100 keys and a slow one, and one event in a hundred
fails at its first try. `load_laws` has what must hold afterwards for a run. A processor writes each event to
another topic, where each must be once, in the order of its key. A member that gets SIGTERM must end in its
time.
"""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from cloudevents_kafka import (
    Event,
    to_record,
)
from cloudevents_kafka.testing import LocalBroker
from tests.support.load_laws import Outage, calls_of, faults
from tests.support.load_member import BROKEN, STOP_SECONDS, Combination

MEMBERS: Final = 3
PARTITIONS: Final = 6
KEYS: Final = 100
END_SECONDS: Final = 30.0  # more, for the start and the end of a process
SECONDS: Final = 120.0  # for progress


_PROTOCOLS: Final = ("range", "cooperative-sticky", "consumer")
COMBINATIONS: Final = (
    *(Combination("threads", "confluent", protocol) for protocol in _PROTOCOLS),
    *(Combination("asyncio", "confluent", protocol) for protocol in _PROTOCOLS),
    Combination("asyncio", "aiokafka", "range"),
    *(Combination("processor", "confluent", protocol) for protocol in _PROTOCOLS),
    Combination("asyncio-processor", "confluent", "range"),
)
IN_EACH_RUN: Final = (COMBINATIONS[6],)  # tests of rebalances have one of threads


class Trial:
    """One combination: its topics, the feed, the members, and what was done to them."""

    def __init__(self, broker: LocalBroker, combination: Combination, events: int, seed: int) -> None:
        self._broker, self._combination, self._events = broker, combination, events
        self._chance = random.Random(seed)
        self._folder = Path(tempfile.mkdtemp(prefix="load-"))
        self._log = self._folder / "handled"
        self._log.touch()
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._outages: list[Outage] = []
        self._numbers: dict[str, list[int]] = defaultdict(list)
        self._started = 0
        self._sent = 0
        self.longest = 0.0
        """Seconds from SIGTERM to the end of a member."""
        self.done: Counter[str] = Counter()
        broker.create_topic(combination.name, partitions=PARTITIONS)
        broker.create_topic(combination.target, partitions=PARTITIONS)

    def _start(self) -> None:
        """Start a member in a free place, which has one transactional id."""
        taken = {name.rsplit("-", 2)[1] for name in self._running}
        place = next(str(number) for number in range(MEMBERS) if str(number) not in taken)
        self._started += 1
        name = f"{self._combination.name}-{place}-{self._started}"
        servers = self._broker.bootstrap_servers
        arguments = ["-m", "tests.support.load_member", servers, self._combination.name, name]
        with (self._folder / name).open("w", encoding="utf-8") as output:
            self._running[name] = subprocess.Popen(
                [sys.executable, *arguments, str(self._log)],
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def _feed(self, seconds: float) -> None:
        """Send all events, evenly over some seconds."""
        settings = {"enable.idempotence": True, "message.timeout.ms": 300_000, "log_level": 0}
        producer = Producer({"bootstrap.servers": self._broker.bootstrap_servers, **settings})
        began = time.monotonic()
        for number in range(self._events):
            key = "slow" if number % 101 == 100 else f"k{self._chance.randrange(KEYS)}"
            record = to_record(Event(id=str(number), source="/load", type="t"), key=key)
            producer.produce(self._combination.name, key=key, headers=list(record.headers))
            self._numbers[key].append(number)
            self._sent += 1
            producer.poll(0)
            time.sleep(max(0.0, began + seconds * number / self._events - time.monotonic()))
        assert producer.flush(120) == 0

    def run(self, *, interval: float, seconds: float, outages: tuple[str, ...]) -> None:
        """Feed for some seconds, with a signal at each interval and outages between; then check."""
        for _ in range(MEMBERS):
            self._start()
        feed = threading.Thread(target=self._feed, args=(seconds,))
        feed.start()
        acts: list[Callable[[], None]] = [self._terminate, self._kill]
        try:
            self._wait(lambda: self._handled() > 0)
            planned = {
                int((at + 1) * seconds / interval / (len(outages) + 1)): what
                for at, what in enumerate(outages)
            }
            for number in range(max(2, int(seconds / interval))):
                time.sleep(interval)
                if number in planned:
                    self._break_broker(planned[number])
                acts[number % 2]()
                self._replace()
            feed.join()
            self._wait(lambda: self._handled() >= self._events)
            for name in list(self._running):
                self._end(name)
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()
            feed.join()
        self._check()

    def _handled(self) -> int:
        if self._combination.is_processor:
            return len(set(self._copies()))
        return len({line.split()[4] for line in self._lines() if line.split()[2] == "e"})

    def _lines(self) -> list[str]:
        return self._log.read_text("utf-8").splitlines()

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Wait for progress, with all members running."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            self._replace()
            assert time.monotonic() < deadline, f"{self._handled()} of {self._events}\n{self._recent()}"
            time.sleep(0.2)

    def _replace(self) -> None:
        for name, process in list(self._running.items()):
            if process.poll() is not None:
                assert process.returncode == BROKEN and self._outages, self._recent()  # noqa: PT018
                self.done["ended by a TransactionError"] += 1
                del self._running[name]
        while len(self._running) < MEMBERS:
            self._start()

    def _terminate(self) -> None:
        self._end(self._chance.choice(sorted(self._running)))
        self.done["SIGTERM"] += 1

    def _end(self, name: str) -> None:
        """Send SIGTERM, and wait for the end within the bound."""
        process, began = self._running.pop(name), time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS + END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"{name} did not end\n{self._recent()}") from None
        self.longest = max(self.longest, time.monotonic() - began)
        codes = (
            0,
            -signal.SIGTERM,
            *((BROKEN,) if self._outages else ()),
        )  # at its start it has no handler yet
        assert process.returncode in codes, f"{name}: {process.returncode}\n{self._recent()}"

    def _kill(self) -> None:
        name = self._chance.choice(sorted(self._running))
        process, at = self._running.pop(name), time.monotonic()
        process.kill()
        process.wait()
        self._outages.append(Outage(at, time.monotonic(), name))
        self.done["SIGKILL"] += 1

    def _break_broker(self, how: str) -> None:
        began = time.monotonic()
        if how == "kill":
            self._broker.kill()
            self._broker.start()
        else:
            self._broker.restart()
        # Until the members have found it again nothing is committed.
        self._outages.append(Outage(began, time.monotonic() + 15))
        self.done[f"{how} of the broker"] += 1

    def _recent(self) -> str:
        names = sorted(
            self._folder.glob(f"{self._combination.name}-*"), key=lambda path: path.stat().st_mtime
        )
        texts = [f"{path.name}:\n{path.read_text('utf-8')[-1500:]}" for path in names[-4:]]
        return "\n".join(texts)

    def _copies(self) -> list[tuple[str, int]]:
        """Return the keys and numbers in the target, in the order of each partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._broker.bootstrap_servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        topic = self._combination.target
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        found: list[tuple[str, int]] = []
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            for message in consumer.consume(1000, timeout=1):
                if message.error() is not None:
                    ended.add(message.partition())
                else:
                    number = next(int(value) for name, value in message.headers() if name == "ce_id")
                    found.append((message.key().decode(), number))
        consumer.close()
        return found

    def _check(self) -> None:
        if self._combination.is_processor:
            copies: dict[str, list[int]] = defaultdict(list)
            for key, number in self._copies():
                copies[key].append(number)
            found = [
                f"{key}: each must be once, in order, got {copies[key][:5]}…"
                for key in self._numbers
                if copies[key] != self._numbers[key]
            ]
        else:
            found = faults(calls_of(self._lines()), self._numbers, self._outages)
        assert not found, f"{len(found)} faults, such as {found[:5]}; see {self._folder}"
        shutil.rmtree(self._folder)


@contextmanager
def brokers() -> Iterator[LocalBroker]:
    """Yield a broker whose groups are quick."""
    quick = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 1000,
        "group.consumer.min.session.timeout.ms": 3000,
        "group.consumer.session.timeout.ms": 3000,
        "group.consumer.min.heartbeat.interval.ms": 500,
        "group.consumer.heartbeat.interval.ms": 500,
    }
    with LocalBroker(properties=quick) as broker:
        yield broker


def run(
    broker: LocalBroker,
    combination: Combination,
    *,
    events: int,
    seed: int,
    interval: float,
    seconds: float,
    outages: tuple[str, ...],
) -> Trial:
    """Run a combination, check it, and say what was done."""
    began = time.monotonic()
    trial = Trial(broker, combination, events, seed)
    trial.run(interval=interval, seconds=seconds, outages=outages)
    what = ", ".join(f"{name} {count}" for name, count in sorted(trial.done.items()))
    sys.stdout.write(
        f"{combination.name}: {events:,} events, none lost, in order; {what}; the longest end "
        f"{trial.longest:.1f} s; {time.monotonic() - began:.0f} s\n"
    )
    sys.stdout.flush()
    return trial


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="of all that is random")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="combinations")
    options, _ = parser.parse_known_args()
    by_name = {each.name: each for each in COMBINATIONS}
    sys.stdout.write(f"--seed {options.seed}\n")
    failed = 0
    for name in options.only or by_name:
        with brokers() as broker:
            try:
                run(
                    broker,
                    by_name[name],
                    events=options.events,
                    seed=options.seed,
                    interval=5,
                    seconds=max(10.0, options.events / 200),
                    outages=("restart", "kill"),
                )
            except AssertionError as error:
                failed += 1
                sys.stdout.write(f"{name}: FAILED: {error}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
