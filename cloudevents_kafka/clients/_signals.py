"""`stop_at_sigterm`: ends a run at SIGTERM, the signal with which service managers end a service."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


@contextmanager
def stop_at_sigterm(stop: Callable[[], object], loop: AbstractEventLoop | None = None) -> Iterator[None]:
    """Call ``stop`` when the process receives SIGTERM, unless the program has set its own SIGTERM handler.

    Yields once. The program's own handler may call ``stop``. `stop_at_sigterm` has an effect only in the main
    thread. If an event ``loop`` runs in the main thread, this loop calls ``stop``, because SIGTERM alone does
    not wake a loop that waits.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    if loop is None:
        signal.signal(signal.SIGTERM, lambda *_: stop())
    else:
        loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if loop is not None:
            loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
