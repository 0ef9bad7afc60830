"""Count forks, because a child process does not have the threads of its parent."""

from __future__ import annotations

import os

number = 0


def _count() -> None:
    global number  # noqa: PLW0603  # of the process
    number += 1


os.register_at_fork(after_in_child=_count)
