"""Let another thread run, or an exception be raised, before any one instruction of a call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Thread
from types import FrameType
from typing import Any


def interrupted(call: Callable[[], Any], number: int, action: Callable[[], Any]) -> bool:
    """Make a call, run an action before this instruction of the package, and return whether there was one.

    Raises what they raise. The call has a thread of its own: an exception that a trace function raises at
    any instruction may leave its thread as if it were handling another one.
    """
    left = number
    errors: list[BaseException] = []

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

    def run() -> None:
        sys.settrace(trace)
        try:
            call()
        except BaseException as error:  # noqa: BLE001  # it is raised by the caller
            errors.append(error)
        finally:
            sys.settrace(None)

    in_another_thread(run)()
    for error in errors:
        raise error
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
