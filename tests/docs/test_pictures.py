"""The pictures of docs show what is true: imports, names, folders and figures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(*names: str) -> None:
    """Fail if a picture is not as it would be drawn today."""
    argv = [sys.executable, ROOT / ".ci" / "pictures", "--check", *names]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.release  # each change of an import changes the picture
def test_pictures_are_of_today() -> None:
    """The house has today's imports, the flow today's verdicts and formats, the bars today's tables."""
    check("house", "flow", "speed_of_converters", "speed_by_sdk", "speed_of_landing")


@pytest.mark.release
def test_the_landed_topic_is_of_today() -> None:
    """The folders have the names that the pipeline uses."""
    pytest.importorskip("pyspark")
    check("landed_topic")


def test_each_picture_is_checked() -> None:
    """A picture that no script draws could become false."""
    listed = subprocess.run(
        [sys.executable, ROOT / ".ci" / "pictures", "--list"], capture_output=True, text=True, check=True
    )
    assert sorted(listed.stdout.split()) == sorted(
        path.stem for path in (ROOT / "docs" / "assets").glob("*.svg")
    )
