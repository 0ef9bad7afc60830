"""Faults: which requests fail, how, and how often.

A fault is a function of a call and of ``handle``, which handles the call and returns the
response. It returns the response to send, or None to send nothing::

    broker.faults.add(error(ErrorCode.REQUEST_TIMED_OUT, topic="orders"), api=ApiKey.PRODUCE, times=2)
    broker.faults.add(drop_before(), when=lambda call: call.client_id == "late")
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.messages.fetch import FetchResponse
from cloudevents_kafka.protocol.schema import Structure
from tests.support.wire_broker._call import Call, InjectedError
from tests.support.wire_broker._errors import CloseConnection

Handle: TypeAlias = Callable[[], Structure | None]
Fault: TypeAlias = Callable[[Call, Handle], Structure | None]


def drop_before() -> Fault:
    """Return a fault that closes the connection before the request is handled."""

    def fault(call: Call, handle: Handle) -> Structure | None:
        raise CloseConnection

    return fault


def drop_after() -> Fault:
    """Return a fault that handles the request, and closes the connection instead of answering."""

    def fault(call: Call, handle: Handle) -> Structure | None:
        handle()
        raise CloseConnection

    return fault


def delay(seconds: float) -> Fault:
    """Return a fault that delays the handling; later requests of the connection wait too."""
    return _before(lambda call: call.cluster.changes.sleep(seconds))


def error(code: int, topic: str | None = None, partition: int | None = None) -> Fault:
    """Return a fault that answers with an error code: all of the request, or one topic or partition."""
    return _before(lambda call: call.injected_errors.append(InjectedError(code, topic, partition)))


def move_leader(topic: str, partition: int, to: int) -> Fault:
    """Return a fault that moves a partition's leader just before the request is handled."""
    return _before(lambda call: call.cluster.move_leader(topic, partition, to))


def no_response() -> Fault:
    """Return a fault that handles the request and never answers; the connection stays open."""

    def fault(call: Call, handle: Handle) -> Structure | None:
        handle()
        return None

    return fault


def wrong_correlation_id(by: int = 1) -> Fault:
    """Return a fault that adds ``by`` to the response's correlation id."""

    def edit(frame: bytes) -> bytes:
        (correlation_id,) = struct.unpack_from(">I", frame, 4)
        return frame[:4] + struct.pack(">I", (correlation_id + by) % (1 << 32)) + frame[8:]

    return _edit_response(edit)


def truncate(keep: int) -> Fault:
    """Return a fault that sends the first ``keep`` bytes of the response's frame, and closes."""
    return _edit_response(lambda frame: frame[:keep], close=True)


def frame_size(size: int) -> Fault:
    """Return a fault that replaces the size in front of the response, and closes."""
    return _edit_response(lambda frame: struct.pack(">i", size) + frame[4:], close=True)


def corrupt_records() -> Fault:
    """Return a fault that inverts the last byte of the fetched records, so that checksums fail."""

    def fault(call: Call, handle: Handle) -> Structure | None:
        response = handle()
        if isinstance(response, FetchResponse):
            for part in (part for topic in response.responses for part in topic.partitions):
                if part.records:
                    part.records = part.records[:-1] + bytes((part.records[-1] ^ 0xFF,))
        return response

    return fault


def script(script: Callable[[Call], Structure | None]) -> Fault:
    """Return a fault that answers with the result of a function; None answers as without the fault."""

    def fault(call: Call, handle: Handle) -> Structure | None:
        response = script(call)
        return handle() if response is None else response

    return fault


def _edit_response(edit: Callable[[bytes], bytes], *, close: bool = False) -> Fault:
    def plan(call: Call) -> None:
        call.response_edits.append(edit)
        call.close_after_response = close

    return _before(plan)


def _before(action: Callable[[Call], None]) -> Fault:
    """Return a fault that does something to a call, with the cluster's lock held, and handles it."""

    def fault(call: Call, handle: Handle) -> Structure | None:
        with call.cluster.changes:
            action(call)
        return handle()

    return fault


@dataclass
class PlannedFault:
    """A planned fault: how many requests it ``matched``, and how many ``remaining``, None for all."""

    fault: Fault
    api: int | None
    remaining: int | None
    when: Callable[[Call], bool] | None
    matched: int = 0

    def matches(self, call: Call) -> bool:
        """Return whether the fault applies to a request, and count it if so."""
        if self.remaining == 0 or self.api not in {None, call.key} or (self.when and not self.when(call)):
            return False
        self.matched += 1
        if self.remaining is not None:
            self.remaining -= 1
        return True


class Faults:
    """The planned faults, in the order in which they were added."""

    def __init__(self) -> None:
        self._faults: list[PlannedFault] = []
        self._lock: Final = threading.Lock()

    def add(
        self,
        fault: Fault,
        *,
        api: int | None = None,
        times: int | None = 1,
        when: Callable[[Call], bool] | None = None,
    ) -> PlannedFault:
        """Plan a fault for the next requests of an API key (None: any), and return the plan.

        ``times`` None is for all requests; ``when`` selects among them.
        """
        planned = PlannedFault(fault, api, times, when)
        with self._lock:
            self._faults.append(planned)
        return planned

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    def wrap(self, call: Call, handle: Handle) -> Handle:
        """Return ``handle`` with the faults of this request around it, the first added outermost."""
        with self._lock:
            matching = [planned.fault for planned in self._faults if planned.matches(call)]
            for fault in reversed(matching):
                handle = partial(fault, call, handle)
            return handle
