"""`TaskRun`: the loop of `AsyncEventConsumer.run`, which reads records, passes them to tasks, and commits.

All code of this module runs in the event loop. A `Source` makes the client calls: aiokafka's calls are
awaited, and confluent-kafka's calls are made in one thread. `Progress` contains the client calls that the
loops for threads and for asyncio have in common. A rebalance waits for `TaskRun.revoke`. The method waits for
handlers, but not for a client call that may itself wait for the end of the rebalance.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.clients._gathered import Readable
from cloudevents_kafka.clients._policy import RunResult, read_or_refuse
from cloudevents_kafka.clients._run import Progress, still_in_work
from cloudevents_kafka.clients._signals import stop_at_sigterm
from cloudevents_kafka.clients._steps import Steps
from cloudevents_kafka.clients._workers import log_unfinished
from cloudevents_kafka.clients.aio._loop import Turn, await_fully, perform
from cloudevents_kafka.clients.aio._source import Source
from cloudevents_kafka.clients.aio._tasks import Tasks

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

_POLL_SECONDS: Final = 0.1
_STOP_SECONDS: Final = 1.0  # for the calls of the client after a stop
_BACK_SECONDS: Final = 1.0  # for going back to unfinished records, at the end
_REVOKE_SECONDS: Final = 15.0  # for the commit of partitions that are revoked


class TaskRun:
    """The state of one call of `AsyncEventConsumer.run`; ``before`` are the tasks of an earlier call."""

    def __init__(
        self, events: Readable[Any], source: Source, tasks: Tasks, before: Tasks | None = None
    ) -> None:
        self._events = events
        self._gathered = events._gathered
        self._source = source
        self._before = before
        self._policy = tasks.policy
        self._tasks = tasks
        self._turn = Turn()
        self.progress = Progress(
            tasks, source, is_subscribed=events.is_subscribed, is_passed=events.is_passed
        )

    async def handle_all(self) -> RunResult:
        """Handle records until the end of the run, as `AsyncEventConsumer.run` says; return the counts."""
        with stop_at_sigterm(self._stop, asyncio.get_running_loop()):
            try:
                await self._wait_for_handlers()
                await self._read_until_stop()
            except asyncio.CancelledError:
                self._stop()
                raise
            finally:
                await self._end(self._policy.stop_timeout)
        return self._tasks.result()

    def _stop(self) -> None:
        self._events._stopped = True

    async def _perform(self, steps: Steps[None]) -> None:
        await perform(steps, self._source.answer)

    async def _wait_for_handlers(self) -> None:
        """Wait for the running handlers of an earlier run, so that no record is in two handlers at once."""
        if self._before is not None:
            schedule = self._before.schedule
            if not await self._before.wait(lambda: not schedule.in_work, self._policy.stop_timeout):
                raise still_in_work(len(schedule.in_work))

    async def _read_until_stop(self) -> None:
        """Read records; after a request to stop, wait only a moment for a client that may hang."""
        reading = asyncio.create_task(self._read())
        try:
            while not self._events._stopped and not reading.done():
                await asyncio.wait((reading,), timeout=_POLL_SECONDS)
            await asyncio.wait((reading,), timeout=_STOP_SECONDS)
        finally:
            reading.cancel()
            await asyncio.wait((reading,))
        if not reading.cancelled():
            reading.result()

    async def _read(self) -> None:
        """Read records until the run must end, and commit finished records."""
        progress, tasks = self.progress, self._tasks
        await self._perform(progress.begin())
        while not self._events._stopped and not tasks.cancelled:
            now = time.monotonic()
            if serves := progress.is_due(now):  # a poll also keeps the member in its group
                await self._perform(progress.commit(now))
            await self._perform(progress.pause())
            has_read = await self._begin_all(now, least=int(serves))
            may_read = progress.may_read()
            if serves and not may_read:
                await self._source.wait(_POLL_SECONDS, 1)
            elif has_read:
                if may_read and not self._source.waiting:
                    self._source.begin()
                await self._turn.end()
            elif may_read:
                await self._source.wait(_POLL_SECONDS)
            elif not progress.is_idle:
                await tasks.wait(lambda: tasks.cancelled or progress.may_read(), _POLL_SECONDS, for_room=True)
            if has_read or self._source.waiting or not progress.is_idle:
                progress.idle_since = now
            elif progress.is_over(now):
                return

    async def _begin_all(self, now: float, least: int) -> bool:
        """Pass fetched records to the handler tasks, within the run's limits; return whether any passed."""
        number, schedule = 0, self._tasks.schedule
        self._source.drop_moved()
        waiting = self._source.waiting
        while waiting and (number < least or self.progress.may_read()) and not self._tasks.cancelled:
            message = waiting[0]
            if message.error() is not None:
                del waiting[0]
                self._gathered.is_record(message)
                continue
            if not schedule.knows((message.topic(), message.partition())):
                await self._perform(self.progress.look())
                self._source.drop_moved()
                if not waiting or waiting[0] is not message:  # its partition was revoked meanwhile
                    continue
            item = read_or_refuse(partial(self._gathered.read, message))
            del waiting[0]  # after an error of a user's function, the record is left in the list
            if item is not None:
                self._tasks.add(item, now)
                number += 1
        return number > 0

    async def revoke(self, places: Iterable[TopicPartition], *, lost: bool) -> None:
        """Skip waiting records of revoked partitions, wait for running handlers, and commit."""
        names, tasks = self.progress.close(places), self._tasks
        at_work = partial(self.progress.is_at_work, names)
        if not lost and not await tasks.wait(
            lambda: tasks.is_over or not at_work(),
            self._gathered.bound_revocation(self._policy.revoke_timeout),
        ):
            log_unfinished(tasks.schedule.working(names), "revoke_timeout", "member of the group")
        with suppress(TimeoutError):
            async with asyncio.timeout(_REVOKE_SECONDS):
                await self._perform(self.progress.hand_over(names, lost=lost or tasks.is_over))

    async def _end(self, seconds: float) -> None:
        """Stop calling the handler, commit the finished records, and seek back to the unfinished records.

        The run always seeks back, even if the current task is cancelled during the other steps. Without this
        seek, the next run would continue after the unfinished records, and commit later offsets.
        """
        try:
            await self._finish(seconds)
        finally:
            await await_fully(self._go_back())

    async def _finish(self, seconds: float) -> None:
        """Wait for the running handlers, and commit the finished records, within ``seconds``."""
        tasks, schedule = self._tasks, self._tasks.schedule
        deadline = time.monotonic() + seconds
        tasks.cancel()
        if not await tasks.wait(lambda: not schedule.in_work, seconds * 0.8):  # the rest is for the commit
            log_unfinished(len(schedule.in_work), "stop_timeout", "process")
        left = max(0.0, deadline - time.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._perform(self.progress.keep())
                await self._perform(self.progress.commit_last(left))

    async def _go_back(self) -> None:
        """Seek back to unfinished records, and cancel the handlers that have not returned."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_BACK_SECONDS):
                await self._perform(self.progress.go_back())
        self._gathered.discard(self.progress.left)
        await self._tasks.end()
