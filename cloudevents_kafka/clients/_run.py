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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients._commits import Commits
from cloudevents_kafka.clients._offsets import Progress
from cloudevents_kafka.clients._passing import find_passing
from cloudevents_kafka.clients._protocols import check_handler
from cloudevents_kafka.clients.dead_letters import DeadLetterError, DeadLetters, deliver
from cloudevents_kafka.errors import DataError, DecodeError
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

Item = Decoded | Undecodable
Action = Literal["fail", "skip"] | DeadLetters
"""What becomes of a record that failed."""
OnFailure = Action | Callable[[Item, Exception], Action]
"""An `Action`, or a function that returns one for a record and its error."""

_POLL_SECONDS: Final = 0.1
_COMMIT_SECONDS: Final = 1.0  # between two commits
_MAX_BACKOFF: Final = 30.0  # seconds between two tries
_QUEUED: Final = 16  # records in work or waiting for it, for each thread: so many may be handled again
_PAUSE_AFTER: Final = 5.0  # seconds without room for a record
_LASTING: Final = (DecodeError, DataError)  # of the record itself, unless they have a cause that passes
_log: Final = logging.getLogger(__name__)


class RunResult(msgspec.Struct):
    """The numbers of records that were handled, were skipped, became dead letters, and of further tries.

    Examples:
        >>> from cloudevents_kafka import EventConsumer
        >>> with EventConsumer(consumer) as events:
        ...     counts = events.run(lambda item: None, idle_timeout=0.1)
        >>> counts
        RunResult(handled=2, skipped=0, dead=0, retried=0)
    """

    handled: int = 0
    skipped: int = 0
    dead: int = 0
    retried: int = 0


class Policy(msgspec.Struct, kw_only=True):
    """The handler, and what becomes of its failures; see `EventConsumer.run`."""

    handler: Callable[[Any], object]
    read: Callable[[Record], Any]
    on_failure: OnFailure
    tries: int
    backoff: float
    retry_on: type[Exception] | tuple[type[Exception], ...] | None

    def __post_init__(self) -> None:
        """Check the values. Raises `ValueError`, `TypeError`."""
        check_handler(self.handler)
        if self.on_failure not in ("fail", "skip") and not (
            isinstance(self.on_failure, DeadLetters) or callable(self.on_failure)
        ):
            raise TypeError(
                f"on_failure must be 'fail', 'skip', a DeadLetters or a function, got {self.on_failure!r}"
            )
        if self.tries < 1 or not self.backoff >= 0:
            raise ValueError(f"tries must be from 1 and backoff from 0, got {self.tries} and {self.backoff}")

    def handle(self, item: Item, counts: RunResult, ending: threading.Event) -> bool:
        """Handle one record, by several tries if it may; return False if ``ending`` prevented the next.

        Raises the error of a record that fails finally.
        """
        for attempt in count(1):
            error = self._try(item, attempt)
            if error is None:
                counts.handled += 1
                return True
            if attempt >= self.tries or not self._may_pass(error):
                self._give_up(item, error, attempt, counts)
                return True
            _log.info("%s: try %d of %d failed: %s", item.record.where, attempt, self.tries, _reason(error))
            counts.retried += 1
            if ending.wait(min(self.backoff * 2 ** min(attempt - 1, 30), _MAX_BACKOFF)):
                return False
            item = self._read_again(item)
        raise AssertionError

    def _may_pass(self, error: Exception) -> bool:
        """Return whether another try is made after an error."""
        if self.retry_on is not None:
            return isinstance(error, self.retry_on)
        return not isinstance(error, _LASTING) or find_passing(error) is not None

    def _read_again(self, item: Item) -> Item:
        """Return the item of a record whose data may be read now."""
        return _read(partial(self.read, item.record)) or item if isinstance(item, Undecodable) else item

    def _try(self, item: Item, attempt: int) -> Exception | None:
        if isinstance(item, Undecodable):
            return item.error
        try:
            self.handler(item)
        except Exception as error:  # noqa: BLE001  # a user's function may raise any error
            return error
        except BaseException as error:
            _note_place(error, item, attempt)
            raise
        return None

    def _give_up(self, item: Item, error: Exception, attempt: int, counts: RunResult) -> None:
        try:
            self._act(item, error, attempt, counts)
        except BaseException as failure:
            _note_place(failure, item, attempt)
            if failure is not error and not isinstance(failure, DeadLetterError):
                failure.add_note(f"its handler has failed: {error!r}")
            raise

    def _act(self, item: Item, error: Exception, attempt: int, counts: RunResult) -> None:
        action: Any = self.on_failure
        if callable(action):
            action = action(item, error)
        if isinstance(action, DeadLetters):
            deliver(action, item, error, attempt=attempt)
            counts.dead += 1
            outcome = "is a dead letter"
        elif action == "skip":
            counts.skipped += 1
            outcome = "is skipped"
        else:
            raise error
        tries = pluralize(attempt, "try", "tries")
        _log.warning("%s %s after %s: %s", item.record.where or "a record", outcome, tries, _reason(error))

    def check_topics(self, assigned: list[TopicPartition]) -> None:
        """Raise `ValueError` if the consumer reads its own dead letters, which would have no end."""
        topic = self.on_failure.topic if isinstance(self.on_failure, DeadLetters) else None
        if any(place.topic == topic for place in assigned):
            raise ValueError(
                f"on_failure must send to a topic that the consumer does not read, got {topic!r}, which it "
                "reads; exclude it from the subscription, or send dead letters to another topic"
            )


def _note_place(error: BaseException, item: Item, attempt: int) -> None:
    error.add_note(f"while {item.record.where or 'a record'} was handled, try {attempt}")


def _reason(error: Exception) -> str:
    """Return an error as its `repr`, without the place of the record."""
    return f"{type(error).__name__}({error.reason!r})" if isinstance(error, DecodeError) else repr(error)


class _Worker(threading.Thread):
    """A thread that handles the records of its queue, up to None; a daemon, as a handler may hang."""

    def __init__(self, policy: Policy, work: _Work) -> None:
        super().__init__(name="cloudevents_kafka.run", daemon=True)
        self.queue: SimpleQueue[Item | None] = SimpleQueue()
        self.counts = RunResult()
        self.error: BaseException | None = None
        self._policy = policy
        self._work = work

    def run(self) -> None:
        left = False  # whether a record was left before its last try: those after it may have its key
        while (item := self.queue.get()) is not None:
            if left or self._work.cancelled.is_set():
                continue
            try:
                left = not self._policy.handle(item, self.counts, self._work.ending)
            except BaseException as error:  # noqa: BLE001  # SystemExit of a handler, too: run() raises it
                self.error = error
                self._work.ending.set()
                self._work.cancelled.set()
            else:
                if not left:
                    self._work.done.put(item)


class _Work:
    """The workers, and what they share: the records that are done, and two flags.

    ``ending``: make no further tries. ``cancelled``: begin no record.
    """

    def __init__(self, client: Any, policy: Policy, concurrency: int) -> None:
        self.done: SimpleQueue[Item] = SimpleQueue()
        self.ending = threading.Event()
        self.cancelled = threading.Event()
        self.progress = Progress()
        self.commits = Commits(client, self.progress)
        self._client = client
        self._check_topics = policy.check_topics
        self.workers = [_Worker(policy, self) for _ in range(concurrency)]
        for worker in self.workers:
            worker.start()

    @property
    def is_full(self) -> bool:
        return len(self.progress) >= _QUEUED * len(self.workers)

    def begin(self, item: Item) -> None:
        is_known = self.progress.is_known(item)
        self.progress.begin(item)
        if not is_known:  # before it is handled: what the group has now is of others
            assigned = self._client.assignment()
            self._check_topics(assigned)
            self.commits.look(assigned, _COMMIT_SECONDS)
        record = item.record
        # Records without a key keep the order of their partition.
        lane = hash((record.topic, record.partition if record.key is None else record.key))
        self.workers[lane % len(self.workers)].queue.put(item)

    def collect(self, seconds: float = 0) -> bool:
        """Note records that are done, after waiting for one so many seconds; return whether there is room."""
        try:
            self.progress.end(self.done.get(seconds > 0, seconds))
            while True:
                self.progress.end(self.done.get_nowait())
        except Empty:
            return not self.is_full

    def commit(self) -> None:
        """Commit what is done of the partitions that are assigned. Raises `ConsumeError`, `ValueError`."""
        assigned = self._client.assignment()
        self._check_topics(assigned)
        self.progress.keep(assigned)
        self.commits.commit(_COMMIT_SECONDS)

    def end(self, deadline: float) -> None:
        """End the workers after the records that they have, or at the deadline after the one in work."""
        self.ending.set()
        for worker in self.workers:
            worker.queue.put(None)
        for worker in self.workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        self.cancelled.set()
        self.collect()


def run(
    events: Any, policy: Policy, *, concurrency: int, stop_timeout: float, idle_timeout: float | None
) -> RunResult:
    """Handle the records of an `EventConsumer`, as `EventConsumer.run` says, and return the counts."""
    if concurrency < 1 or not stop_timeout >= 0:
        raise ValueError(
            f"concurrency must be from 1 and stop_timeout from 0, got {concurrency} and {stop_timeout}"
        )
    policy.check_topics(events.consumer.assignment())
    work = _Work(events.consumer, policy, concurrency)
    with events._late_close.during(work.workers, events.close), _stop_at_sigterm(events):  # noqa: SLF001
        try:
            for item in _records(events, work, idle_timeout):
                work.begin(item)
        finally:
            _end(events, work, stop_timeout)
    for worker in work.workers:
        if worker.error is not None:
            raise worker.error
    counts = (msgspec.structs.astuple(worker.counts) for worker in work.workers)
    return RunResult(*map(sum, zip(*counts, strict=True)))


def _records(events: Any, work: _Work, idle_timeout: float | None) -> Iterator[Item]:
    """Yield records while there is room for them, and commit what is done."""
    idle_since = committed = polled = time.monotonic()
    while not events.stopped and not work.cancelled.is_set():
        has_room = work.collect()
        now = time.monotonic()
        if now - committed >= _COMMIT_SECONDS:
            work.commit()
            committed = now
        item = None
        if has_room:
            item, polled = _poll(events, _POLL_SECONDS), now
        elif not work.collect(_POLL_SECONDS) and time.monotonic() - polled >= _PAUSE_AFTER:
            item, polled = _poll_paused(events), now
        if item is not None:
            yield item
        if item is not None or work.progress or not has_room:
            idle_since = now
        elif idle_timeout is not None and now - idle_since >= idle_timeout:
            return


def _poll(events: Any, seconds: float) -> Item | None:
    return _read(partial(events.poll, seconds))


def _read(read: Callable[[], Item | None]) -> Item | None:
    try:
        return read()
    except DecodeError as error:  # of a consumer with `strict`: what becomes of it is for on_failure
        return Undecodable(error, error.record)


def _poll_paused(events: Any) -> Item | None:
    """Poll for no record, as the group expects calls."""
    places = events.consumer.assignment()
    events.consumer.pause(places)
    try:
        item = _poll(events, 0)  # of a partition that was assigned just now, or None
    finally:
        events.consumer.resume(places)
    return item


def _end(events: Any, work: _Work, seconds: float) -> None:
    """End the workers, commit what is done, and take at most so many seconds."""
    deadline = time.monotonic() + seconds
    work.end(deadline - seconds / 5)  # the rest is for the commit
    hanging = sum(worker.is_alive() for worker in work.workers)
    if hanging:
        records = pluralize(hanging, "record was", "records were")
        _log.warning("%s still in work after stop_timeout, and the next process handles them again", records)
    work.progress.keep(events.consumer.assignment())
    # In a thread: a broker that goes away would make the call longer than the bound.
    left = max(0.0, deadline - time.monotonic())
    last = threading.Thread(target=work.commits.commit, args=(left / 2,), kwargs={"last": True}, daemon=True)
    last.start()
    last.join(left)
    events._go_back(work.progress.left())  # noqa: SLF001  # of its own run


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
