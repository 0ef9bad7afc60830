"""The types that users see, checked by mypy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_types_of_the_public_names() -> None:
    """An Event is an SDK event for a type checker, and wrong calls are errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "tests/typing/sdk.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
