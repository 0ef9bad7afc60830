"""`CallThread`: a thread for client calls that may wait, so that these calls do not block the event loop.

One thread makes all calls of a client. A single thread is needed because in confluent-kafka (2.16), a call
waits for the running call of the same client, and holds Python's interpreter lock during this wait. The
rules:

1. The calls are made one after the other, in order; the event loop only awaits the calls, and never blocks.
2. During a call, the client may itself call a Python function, for example in a rebalance. This Python
   function may wait for a coroutine on the event loop with `CallThread.wait`. While the Python function
   waits, the thread makes further client calls, except calls that read or close.
3. The thread is a daemon thread, and no code joins it, so a client call that hangs blocks neither the event
   loop nor the exit of the process.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")


class _Call(NamedTuple):
    make: Callable[[], object]
    nests: bool = True  # whether this call may be made while another call waits for the loop


_END: Final = _Call(lambda: None, nests=False)
_WAKE: Final = _Call(lambda: None)
_IDLE_SECONDS: Final = 1.0


class CallThread:
    """The thread for client calls: starts at the first call, and ends after `end` or one idle second."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._later: deque[_Call] = deque()  # calls from the queue that must not be nested
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # for the start and the end of the thread

    def call(self, function: Callable[[], T], *, nests: bool = True) -> asyncio.Future[T]:
        """Call a function in the call thread, and return the future of the function's result.

        ``nests`` says whether the function may be called during another client call; ``nests`` must be False
        for a call that reads or closes.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def make() -> None:
            result, error = None, None
            try:
                result = function()
            except BaseException as failure:  # noqa: BLE001  # the future raises it
                error = failure
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, future, result, error)

        with self._lock:
            self._calls.put(_Call(make, nests))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
        return future

    def is_current(self) -> bool:
        """Return whether the current thread is the thread of this `CallThread`."""
        return threading.current_thread() is self._thread

    def wait(self, coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
        """Wait until a coroutine on the event loop has ended.

        Only functions in the call thread may wait in this way. If the event loop is closed, `CallThread.wait`
        returns at once.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        future.add_done_callback(lambda _: self._calls.put(_WAKE))
        while not future.done():
            try:
                call = self._calls.get(timeout=_IDLE_SECONDS)
            except Empty:
                if loop.is_closed():
                    coroutine.close()
                    return
                continue
            if call.nests:
                call.make()
            else:
                self._later.append(call)
        if not future.cancelled():  # all tasks are cancelled when the loop ends
            future.result()

    def end(self) -> None:
        """End the call thread after its queued calls; a later call starts a new thread."""
        self._calls.put(_END)

    def _serve(self) -> None:
        while True:
            call = self._next()
            if call is not _END:
                call.make()
                del call  # frees the result of the call during the wait for the next call
                continue
            with self._lock:
                if self._calls.empty() and not self._later:
                    self._thread = None
                    return

    def _next(self) -> _Call:
        if self._later:
            return self._later.popleft()
        try:
            return self._calls.get(timeout=_IDLE_SECONDS)
        except Empty:
            return _END


def call_once(function: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Call a function in a new thread, and return the future of the function's result."""
    thread = CallThread(name)
    future = thread.call(function)
    thread.end()
    return future


def _settle(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():  # cancelled
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
