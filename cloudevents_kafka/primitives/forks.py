"""How often this process is the child of a fork, since threads and their locks are not in a child."""

from __future__ import annotations

import os

number = 0


def _count() -> None:
    global number  # noqa: PLW0603  # of the process
    number += 1


os.register_at_fork(after_in_child=_count)
