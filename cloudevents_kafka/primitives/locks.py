"""The lock that protects changes of the registered extensions, codecs and formats."""

from __future__ import annotations

import os
from threading import RLock
from typing import Final

# Readers do not need the lock. The lock is reentrant, since the factory of a format may register further
# formats.
registration_lock: Final = RLock()
# After a fork, the thread that has the lock is not in the child process.
os.register_at_fork(after_in_child=registration_lock._at_fork_reinit)  # type: ignore[attr-defined]  # noqa: SLF001  # as the standard library does
