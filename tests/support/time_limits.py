"""The time limits of tests: a test that exceeds its limit fails, and the run goes on.

pytest-timeout raises once, wherever its alarm finds the process. In pytest itself that ends the run with
INTERNALERROR, a handler of all exceptions swallows it, and after it nothing limits what is left. Here
each phase of a test, which is its setup, its call or its teardown, has the whole limit; the alarm raises
only in code of the phase, and again each second until the phase ends.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

AGAIN = 1.0  # seconds
MACHINERY = ("_pytest.", "pluggy.")
LIMIT = pytest.StashKey[float]()


class TimedOut(pytest.fail.Exception.__base__):  # type: ignore[misc]
    """The outcome of a phase that exceeds its limit: no Exception, and none that Hypothesis tries again."""


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Note the limit in place of pytest-timeout's alarm, except for its method "thread"."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    item.stash[LIMIT] = settings.timeout
    return True


@contextmanager
def limited(item: pytest.Item, phase: str) -> Iterator[None]:
    """Return a context manager that raises `TimedOut` in or after its block if that exceeds the limit."""
    limit = item.stash.get(LIMIT, 0)
    message = f"Timeout (>{limit}s) in {phase}"
    running, late = True, False

    def fail(_number: int, frame: FrameType | None) -> None:
        nonlocal late
        if not running:
            return
        if not late:
            item.add_report_section(phase, "threads", stacks())
        late = True
        if frame is not None and not frame.f_globals.get("__name__", "").startswith(MACHINERY):
            raise TimedOut(message)

    before = signal.signal(signal.SIGALRM, fail) if limit else None
    try:
        signal.setitimer(signal.ITIMER_REAL, limit, AGAIN)
        yield
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        if limit:
            signal.signal(signal.SIGALRM, before)
    if late:
        raise TimedOut(message)


def stacks() -> str:
    """Return where each other thread is."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    own = threading.get_ident()
    return "\n".join(
        f"{names.get(ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
        if ident != own
    )


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with limited(item, "setup"):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with limited(item, "call"):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with limited(item, "teardown"):
        return (yield)
