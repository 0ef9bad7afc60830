"""`FetchCalls`: calls aiokafka's ``getmany`` so that no record is lost when the call raises an error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

from cloudevents_kafka.clients._protocols import PolledMessage
from cloudevents_kafka.clients.aio._aiokafka_message import AiokafkaFailure, AiokafkaMessage
from cloudevents_kafka.message_headers import UnreadHeaders, name_error

Found = dict[Any, list[Any]]
"""A mapping from partitions to their records, as ``getmany`` returns it."""

_SINGLE_SECONDS: Final = 2.0  # the wait for a record that the broker has stored
_HINT: Final = (
    "the name may be in another record of the batch, because aiokafka reads no record after the name; "
    "read the topic with confluent-kafka"
)


class FetchCalls:
    """Calls aiokafka's ``getmany`` so that no record is lost when the call raises an error.

    Each fetched record is returned by this call or by a later call, or a message about its error is returned.

    ``getmany`` fetches records from one partition after the other, and moves the client's position in each of
    these partitions. If a record raises an error, ``getmany`` drops the records that it has already fetched.
    Therefore, the method `wait` calls ``getmany`` for only one record. The method `collect` calls ``getmany``
    for several records, without waiting. After an error, `collect` moves the client back to the positions
    that the client had before the call. During the call of ``getmany``, no other code moves the client's
    positions. The method `find` then reads each partition separately, one record at a time, up to the record
    that raises the error. The client's position in this partition is then the offset of the record that
    raises the error.
    """

    def __init__(self, client: Any) -> None:
        import aiokafka.errors

        self.client = client
        self.client_error: type[Exception] = aiokafka.errors.KafkaError
        self._corrupt: type[Exception] = aiokafka.errors.CorruptRecordException
        self._stopped: type[Exception] = aiokafka.errors.ConsumerStoppedError

    async def collect(self, count: int) -> Found:
        """Return up to ``count`` records that the client has already fetched."""
        assigned = self.client.assignment()
        before = {place: self.position(place) for place in assigned}
        try:
            found: Found = await self.client.getmany(timeout_ms=0, max_records=count)
        except Exception:
            if not self.is_new(assigned):
                for place, at in before.items():
                    if at is not None and self.position(place) != at:
                        self.client.seek(place, at)
            raise
        return found

    async def wait(self, seconds: float) -> Found:
        """Return the next record, if a record arrives within some seconds."""
        found: Found = await self.client.getmany(timeout_ms=int(seconds * 1000), max_records=1)
        return found

    async def find(self, error: Exception, count: int, add: Callable[[Found], int]) -> list[PolledMessage]:
        """Find the first record of each partition that raises an error; return messages about these errors.

        The records before the first record that raises an error are passed to ``add``. A message describes an
        error of the client, or is a record without key, value and headers if a header name is not UTF-8. The
        result is empty if more than ``count`` records come before the error, or if the assignment of
        partitions has changed. If no record has caused the client's error, the error is returned as a
        message. If `find` finds neither a record nor an error of a record, ``error`` is raised.
        """
        if self._is_of_no_record(error):
            return [AiokafkaFailure(error)]
        assigned = self.client.assignment()
        places = list(filter(self._may_have_more, assigned))
        added, messages = 0, list[PolledMessage]()
        for place in places:
            for _ in range(max(1, count // len(places))):
                at = self.position(place)
                try:
                    number = add(await self._one_of(place, alone=len(assigned) == 1))
                except Exception as failure:  # noqa: BLE001  # reading a record may raise any error
                    if at is not None and not self.is_new(assigned):
                        messages.append(self._message(place, at, failure))
                    break
                if number == 0:
                    break
                added += number
        if self.is_new(assigned):
            return []  # the partitions are read again from the group's offsets
        if added == 0 and not messages:
            raise error
        return messages

    def _is_of_no_record(self, error: Exception) -> bool:
        """Return whether an error was not caused by a record; raise the error if the client was stopped."""
        if isinstance(error, self._stopped):
            raise error
        return isinstance(error, self.client_error) and not isinstance(error, self._corrupt)

    async def _one_of(self, place: Any, *, alone: bool) -> Found:
        milliseconds = int(_SINGLE_SECONDS * 1000)
        found: Found = await self.client.getmany(
            *(() if alone else (place,)), timeout_ms=milliseconds, max_records=1
        )
        return found

    def _message(self, place: Any, at: int, failure: Exception) -> PolledMessage:
        """Return the message about a record that cannot be read.

        If a header name is not UTF-8, move the client's position to the next record.
        """
        if self._is_of_no_record(failure):
            return AiokafkaFailure(failure)
        if (cause := name_error(failure)) is None:
            return AiokafkaFailure(failure, place, at)
        if self.position(place) == at:
            self.client.seek(place, at + 1)
        headers = UnreadHeaders(cause, _HINT)
        return AiokafkaMessage(
            SimpleNamespace(
                topic=place.topic,
                partition=place.partition,
                offset=at,
                timestamp=-1,
                key=None,
                value=None,
                headers=headers,
            )
        )

    def _may_have_more(self, place: Any) -> bool:
        at, end = self.position(place), self.end(place)
        is_paused = place in getattr(self.client, "paused", set)()
        return at not in (None, sys.maxsize) and not is_paused and (end is None or at < end)

    def end(self, place: Any) -> int | None:
        """Return the end offset of a partition, or None if the client does not know this offset."""
        highwater = getattr(self.client, "highwater", None)
        found: int | None = None if highwater is None else highwater(place)
        return found

    def is_new(self, before: Any) -> bool:
        """Return whether the assignment has changed; aiokafka creates a new object for each assignment."""
        assigned = self.client.assignment()
        if assigned is before:
            return False
        return bool(assigned != before) or assigned is self.client.assignment()

    def position(self, place: Any) -> int | None:
        """Return the position of a partition, or None if the position is not known yet."""
        position = getattr(self.client, "position", None)
        if position is None:  # a client that is not aiokafka's
            return sys.maxsize
        with suppress(self.client_error):
            return _result_now(position(place))
        return None


def _result_now(coroutine: Coroutine[Any, Any, int]) -> int | None:
    """Return the result of a coroutine that returns at once, or None if the coroutine would wait."""
    try:
        coroutine.send(None)
    except StopIteration as returned:
        result: int = returned.value
        return result
    coroutine.close()
    return None
