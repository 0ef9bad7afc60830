"""The list of tests with a session that run each time."""

from __future__ import annotations

import re
from pathlib import Path

from tests.spark.pipeline.in_each_run import IN_EACH_RUN

FOLDER = Path(__file__).parent


def test_each_listed_test_exists() -> None:
    """A test that was renamed or removed leaves the list, too."""
    found = {
        file: re.findall(r"^ *def (test_\w+)", (FOLDER / file).read_text("utf-8"), re.MULTILINE)
        for file in IN_EACH_RUN
    }
    assert {
        file: set(names) - set(found[file])
        for file, names in IN_EACH_RUN.items()
        if set(names) - set(found[file])
    } == {}
