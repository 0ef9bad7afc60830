"""The blocks of the pages of docs that use Spark."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
CONNECT_PAGE = DOCS / "how-to" / "connect_and_clusters.md"


def spark_blocks(page: Path) -> list[str]:
    """Return the Python blocks of a page that need a session of Spark."""
    return re.findall(r"^```python spark\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
