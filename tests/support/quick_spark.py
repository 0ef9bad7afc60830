"""`--quick-spark`: queries of a few rows are interpreted, as their compilation takes longer.

`make test` has this option for most tests of the pipeline. Without it Spark's defaults hold, as in
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--quick-spark", action="store_true", help="compile no queries in tests of the pipeline")
