"""Faults on demand: what is to go wrong with which requests, and how often.

A fault is a function from a call and the broker's own way to answer it, to the answer;
None is no answer. The ones here cover what goes wrong between clients and brokers::

    broker.faults.add(error(7, topic="orders"), api=0, times=2)
    broker.faults.add(drop_before(), when=lambda call: call.client_id == "late")
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from cloudevents_kafka.protocol.messages.fetch import FetchResponse
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.testing.wire_broker.call import Call, Denial
from cloudevents_kafka.testing.wire_broker.errors import Hangup

Answer: TypeAlias = Callable[[], Structure | None]
Fault: TypeAlias = Callable[[Call, Answer], Structure | None]


def drop_before() -> Fault:
    """Close the connection, the request unread."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        raise Hangup

    return fault


def drop_after() -> Fault:
    """Do what is asked, and close the connection in place of an answer."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        answer()
        raise Hangup

    return fault


def delay(seconds: float) -> Fault:
    """Answer later; requests behind this one on the connection wait too."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        until = time.monotonic() + seconds
        with call.cluster.changed:
            while time.monotonic() < until:
                call.cluster.wait(until)
        return answer()

    return fault


def error(code: int, topic: str | None = None, partition: int | None = None) -> Fault:
    """Answer with an error, nothing done: for all that is asked, or one topic or partition of it."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        call.denials.append(Denial(code, topic, partition))
        return answer()

    return fault


def silence() -> Fault:
    """Do what is asked and never answer; the connection stays open."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        answer()
        return None

    return fault


def wrong_correlation_id(by: int = 1) -> Fault:
    """Answer under another number."""

    def edit(frame: bytes) -> bytes:
        (told,) = struct.unpack_from(">I", frame, 4)
        return frame[:4] + struct.pack(">I", (told + by) % (1 << 32)) + frame[8:]

    return _edited(edit)


def truncated(keep: int) -> Fault:
    """Send so many bytes of the answer's frame, its size among them, and close."""
    return _edited(lambda frame: frame[:keep], hang_up=True)


def frame_size(size: int) -> Fault:
    """Announce another size than the answer has, and close."""
    return _edited(lambda frame: struct.pack(">i", size) + frame[4:], hang_up=True)


def corrupt_records() -> Fault:
    """Turn over the last byte of what is fetched, so that no checksum fits."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        response = answer()
        if isinstance(response, FetchResponse):
            for part in (part for topic in response.responses for part in topic.partitions):
                if part.records:
                    part.records = part.records[:-1] + bytes((part.records[-1] ^ 0xFF,))
        return response

    return fault


def moved_leader(topic: str, partition: int, to: int) -> Fault:
    """Let another node lead a partition, just before the request is handled."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        with call.cluster.changed:
            call.cluster.move_leader(topic, partition, to)
        return answer()

    return fault


def scripted(script: Callable[[Call], Structure | None]) -> Fault:
    """Answer with what a function makes of the call; where that is None, as always."""

    def fault(call: Call, answer: Answer) -> Structure | None:
        response = script(call)
        return answer() if response is None else response

    return fault


def _edited(edit: Callable[[bytes], bytes], *, hang_up: bool = False) -> Fault:
    def fault(call: Call, answer: Answer) -> Structure | None:
        call.edits.append(edit)
        call.hang_up = hang_up
        return answer()

    return fault


class Planned:
    """A fault that waits for its requests; ``left`` is how many it will still meet, None for all."""

    def __init__(
        self, fault: Fault, api: int | None, times: int | None, when: Callable[[Call], bool] | None
    ) -> None:
        """Keep the plan."""
        self.fault: Final = fault
        self.left = times
        self.met = 0
        self._api: Final = api
        self._when: Final = when

    def takes(self, call: Call) -> bool:
        """Tell whether this request is one of them, and count it."""
        if self.left == 0 or self._api not in {None, call.key}:
            return False
        if self._when is not None and not self._when(call):
            return False
        self.met += 1
        if self.left is not None:
            self.left -= 1
        return True


class Faults:
    """The faults that are planned, in the order of their planning."""

    def __init__(self) -> None:
        """Begin with none."""
        self._planned: list[Planned] = []
        self._lock: Final = threading.Lock()

    def add(
        self,
        fault: Fault,
        *,
        api: int | None = None,
        times: int | None = 1,
        when: Callable[[Call], bool] | None = None,
    ) -> Planned:
        """Plan a fault for the next requests of an API (any if None), all of them if ``times`` is None."""
        planned = Planned(fault, api, times, when)
        with self._lock:
            self._planned.append(planned)
        return planned

    def clear(self) -> None:
        """Let everything work from now on."""
        with self._lock:
            self._planned.clear()

    def applied(self, call: Call, answer: Answer) -> Answer:
        """Put the faults for this request around its answer; the one planned first is outermost."""
        with self._lock:
            taken = [planned.fault for planned in self._planned if planned.takes(call)]
        for fault in reversed(taken):
            answer = _around(fault, call, answer)
        return answer


def _around(fault: Fault, call: Call, answer: Answer) -> Answer:
    return lambda: fault(call, answer)
