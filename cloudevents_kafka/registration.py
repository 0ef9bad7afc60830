"""The one lock of all that users register: extensions, codecs, event formats.

Each function that changes what is registered takes it, so that threads that register at
the same time do not undo each other's changes. Readers do without: they see one state or the next.
"""

from __future__ import annotations

from threading import RLock
from typing import Final

# Reentrant: what a format is made by may register others.
registration_lock: Final = RLock()
