"""What `EventConsumer.run` does: it passes events to a handler, and decides what becomes of failures.

One thread, the caller's, reads and commits. Others call the handler: records with the same key go to
the same thread, in their order, so a record waits for those before it, and for their further tries. An
offset is committed when all records before it are done, so a record that was in work when the process
ended is handled again by the next one.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.dead_letters import DeadLetters
from cloudevents_kafka.errors import DataError, DecodeError
from cloudevents_kafka.primitives.plural import pluralize

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

Item = Decoded | Undecodable
Action = Literal["fail", "skip"] | DeadLetters
OnFailure = Action | Callable[[Item, Exception], Action]
"""What becomes of a record that failed, or a function that returns it for a record and its error."""

_POLL_SECONDS: Final = 0.1
_COMMIT_SECONDS: Final = 1.0  # between two commits
_MAX_BACKOFF: Final = 30.0  # seconds between two tries
_QUEUED: Final = 100  # records in work or waiting for it, for each thread
_PAUSE_AFTER: Final = 5.0  # seconds without room for a record
_LASTING: Final = (DecodeError, DataError)  # errors of the record itself, which another try does not change
_log: Final = logging.getLogger(__name__)


class Handled(msgspec.Struct):
    """The numbers of records that were handled, were skipped, became dead letters, and of further tries."""

    handled: int = 0
    skipped: int = 0
    dead: int = 0
    retried: int = 0


class Policy(msgspec.Struct, kw_only=True):
    """The handler, and what becomes of its failures; see `EventConsumer.run`."""

    handler: Callable[[Any], object]
    on_error: OnFailure
    tries: int
    backoff: float
    retry_on: type[Exception] | tuple[type[Exception], ...]

    def __post_init__(self) -> None:
        """Check the values. Raises `ValueError`, `TypeError`."""
        if self.on_error not in ("fail", "skip") and not (
            isinstance(self.on_error, DeadLetters) or callable(self.on_error)
        ):
            raise TypeError(
                f"on_error must be 'fail', 'skip', a DeadLetters or a function, got {self.on_error!r}"
            )
        if self.tries < 1 or not self.backoff >= 0:
            raise ValueError(f"tries must be from 1 and backoff from 0, got {self.tries} and {self.backoff}")

    def handle(self, item: Item, counts: Handled, stop: threading.Event) -> bool:
        """Handle one record, by several tries if it may; return False if ``stop`` ended that.

        Raises the error of a record that fails finally.
        """
        for attempt in count(1):
            error = self._try(item)
            if error is None:
                counts.handled += 1
                return True
            if attempt >= self.tries or isinstance(error, _LASTING) or not isinstance(error, self.retry_on):
                self._give_up(item, error, attempt, counts)
                return True
            _log.info("%s: try %d of %d failed: %r", item.record.where, attempt, self.tries, error)
            counts.retried += 1
            if stop.wait(min(self.backoff * 2 ** min(attempt - 1, 30), _MAX_BACKOFF)):
                return False
        raise AssertionError

    def _try(self, item: Item) -> Exception | None:
        if isinstance(item, Undecodable):
            return item.error
        try:
            self.handler(item)
        except Exception as error:  # noqa: BLE001  # a user's function may raise any error
            return error
        return None

    def _give_up(self, item: Item, error: Exception, attempt: int, counts: Handled) -> None:
        action: Any = self.on_error
        if callable(action):
            action = action(item, error)
        if isinstance(action, DeadLetters):
            action.send(item, error, attempt=attempt).result()
            counts.dead += 1
        elif action == "skip":
            counts.skipped += 1
        else:
            error.add_note(f"while {item.record.where or 'a record'} was handled, try {attempt}")
            raise error
        _log.warning("%s failed finally: %r", item.record.where, error)


class Progress:
    """The records in work, and the offsets that a group may commit: before each record that is not done."""

    def __init__(self) -> None:
        self._open: dict[tuple[Any, Any], dict[int, Item]] = {}  # by partition, in the order of offsets
        self._ends: dict[tuple[Any, Any], int] = {}  # after the last record of each
        self._committed: dict[tuple[Any, Any], int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def begin(self, item: Item) -> None:
        """Note a record in work."""
        record = item.record
        name, offset = (record.topic, record.partition), record.next_offset - 1
        if offset < self._ends.get(name, 0):  # the partition moved back: it was sought or assigned again
            self._drop(name)
        self._open.setdefault(name, {})[offset] = item
        self._ends[name] = offset + 1
        self._committed.setdefault(name, offset)

    def end(self, item: Item) -> None:
        """Note a record that is done; one that was begun before its partition moved is ignored."""
        record = item.record
        open_ = self._open.get((record.topic, record.partition), {})
        if open_.get(record.next_offset - 1) is item:
            del open_[record.next_offset - 1]

    def keep(self, assigned: list[TopicPartition]) -> None:
        """Forget partitions that are not assigned."""
        names = {(place.topic, place.partition) for place in assigned}
        for name in self._ends.keys() - names:
            self._drop(name)

    def _drop(self, name: tuple[Any, Any]) -> None:
        for table in (self._open, self._ends, self._committed):
            table.pop(name, None)

    def advance(self, *, again: bool = False) -> list[TopicPartition]:
        """Return the offsets to commit that were not returned before, with ``again`` the others, too."""
        from confluent_kafka import TopicPartition

        done = {name: next(iter(self._open.get(name, ())), end) for name, end in self._ends.items()}
        new = {name: offset for name, offset in done.items() if again or offset > self._committed[name]}
        self._committed |= new
        return [TopicPartition(*name, offset) for name, offset in new.items()]


class _Worker(threading.Thread):
    """A thread that handles the records of its queue, up to None; a daemon, as a handler may hang."""

    def __init__(self, policy: Policy, stop: threading.Event) -> None:
        super().__init__(name="cloudevents_kafka.run", daemon=True)
        self.queue: SimpleQueue[Item | None] = SimpleQueue()
        self.done: deque[Item] = deque()
        self.counts = Handled()
        self.error: BaseException | None = None
        self._policy = policy
        self._stop_asked = stop

    def run(self) -> None:
        while (item := self.queue.get()) is not None:
            if self._stop_asked.is_set():
                continue
            try:
                if self._policy.handle(item, self.counts, self._stop_asked):
                    self.done.append(item)
            except BaseException as error:  # noqa: BLE001  # SystemExit of a handler, too: run() raises it
                self.error = error
                self._stop_asked.set()


def run(
    events: Any,
    policy: Policy,
    *,
    concurrency: int,
    stop_timeout: float,
    idle_timeout: float | None,
) -> Handled:
    """Handle the records of an `EventConsumer`, as `EventConsumer.run` says, and return the counts."""
    if concurrency < 1 or not stop_timeout >= 0:
        raise ValueError(
            f"concurrency must be from 1 and stop_timeout from 0, got {concurrency} and {stop_timeout}"
        )
    stop, progress = threading.Event(), Progress()
    workers = [_Worker(policy, stop) for _ in range(concurrency)]
    for worker in workers:
        worker.start()
    with _stop_at_sigterm(events):
        try:
            for item in _records(events, workers, progress, idle_timeout):
                record = item.record
                progress.begin(item)
                # Records without a key keep the order of their partition.
                lane = hash((record.topic, record.partition if record.key is None else record.key))
                workers[lane % concurrency].queue.put(item)
        finally:
            _end(events, workers, progress, stop, stop_timeout)
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    return Handled(
        *map(sum, zip(*(msgspec.structs.astuple(worker.counts) for worker in workers), strict=True))
    )


def _records(
    events: Any, workers: list[_Worker], progress: Progress, idle_timeout: float | None
) -> Iterator[Item]:
    """Yield records while there is room for them, and commit what is done."""
    idle_since = committed = time.monotonic()
    while not events.stopped and not any(worker.error for worker in workers):
        _collect(workers, progress)
        now = time.monotonic()
        if now - committed >= _COMMIT_SECONDS:
            _commit(events, progress.advance(), asynchronous=True)
            progress.keep(events.consumer.assignment())
            committed = now
        has_room = len(progress) < _QUEUED * len(workers)
        item = events.poll(_POLL_SECONDS) if has_room else _wait_for_room(events, workers, progress)
        if item is not None:
            yield item
        if item is not None or progress or not has_room:
            idle_since = now
        elif idle_timeout is not None and now - idle_since >= idle_timeout:
            return


def _wait_for_room(events: Any, workers: list[_Worker], progress: Progress) -> Item | None:
    """Wait until a record is done; if that takes long, poll for none, as the group expects calls."""
    deadline, full = time.monotonic() + _PAUSE_AFTER, len(progress)
    while time.monotonic() < deadline and not events.stopped:
        _collect(workers, progress)
        if len(progress) < full or any(worker.error for worker in workers):
            return None
        time.sleep(0.005)
    places = events.consumer.assignment()
    events.consumer.pause(places)
    try:
        item: Item | None = events.poll(0)  # of a partition that was assigned just now, or None
    finally:
        events.consumer.resume(places)
    return item


def _collect(workers: list[_Worker], progress: Progress) -> None:
    for worker in workers:
        while worker.done:
            progress.end(worker.done.popleft())


def _end(
    events: Any, workers: list[_Worker], progress: Progress, stop: threading.Event, seconds: float
) -> None:
    """End the workers after the records in work, commit what is done, and take at most so many seconds."""
    deadline = time.monotonic() + seconds
    stop.set()
    for worker in workers:
        worker.queue.put(None)
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic() - seconds / 5))  # the rest is for the commit
    hanging = sum(worker.is_alive() for worker in workers)
    if hanging:
        records = pluralize(hanging, "record was", "records were")
        _log.warning("%s still in work after stop_timeout, and the next process handles them again", records)
    _collect(workers, progress)
    progress.keep(events.consumer.assignment())
    # In a thread: a broker that is away would make the call longer than the bound.
    last = threading.Thread(target=_commit, args=(events, progress.advance(again=True)), daemon=True)
    last.start()
    last.join(max(0.0, deadline - time.monotonic()))


def _commit(events: Any, places: list[TopicPartition], *, asynchronous: bool = False) -> None:
    if not places:
        return
    try:
        failed = [
            place.error
            for place in events.consumer.commit(offsets=places, asynchronous=asynchronous) or ()
            if place.error is not None
        ]
    except Exception as error:  # noqa: BLE001  # of any client: the records are handled again at worst
        failed = [error]
    for reason in failed:
        _log.warning("offsets were not committed: %s", reason)


@contextmanager
def _stop_at_sigterm(events: Any) -> Iterator[None]:
    """Stop at SIGTERM, unless the program has a handler of its own, which calls ``stop`` if it likes."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, lambda *_: events.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
