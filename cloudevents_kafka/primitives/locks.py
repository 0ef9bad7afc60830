"""The lock for changes of the registered extensions, codecs and formats."""

from __future__ import annotations

from threading import RLock
from typing import Final

# Readers do not need it. It is reentrant, since the factory of a format may register further formats.
registration_lock: Final = RLock()
