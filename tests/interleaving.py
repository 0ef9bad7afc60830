"""Let another thread run, or an exception be raised, before any one instruction of a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Thread
from types import FrameType
from typing import Any


def interrupted(call: Callable[[], Any], number: int, action: Callable[[], Any]) -> bool:
    """Make a call, run an action before this instruction of the package, and return whether there was one."""
    left = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if "cloudevents_kafka" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                action()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return left <= 0


def in_another_thread(call: Callable[[], Any]) -> Callable[[], None]:
    """Return a function that makes a call in a thread of its own, and waits for its end."""

    def run() -> None:
        thread = Thread(target=call)
        thread.start()
        thread.join()

    return run


def instructions() -> Iterator[int]:
    """Yield the numbers of instructions; the loop ends itself after the last one."""
    yield from range(1, 100_000)
