"""`--quick-spark`: queries of a few rows are interpreted, as their compilation takes longer.

`make test` has this option for most tests with Spark. Without it Spark's defaults hold, as in
`make release` and in the programs of users.
"""

from __future__ import annotations

from typing import Final

import pytest

SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
COMPILED: Final = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
"""Spark's defaults, for tests of what Spark compiles."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--quick-spark", action="store_true", help="compile no queries in most tests with Spark")
