"""What earlier versions of a pipeline did, and what to do instead; CHANGELOG.md has the same sentences."""

from __future__ import annotations

from typing import Final

CONNECT: Final = (
    "Run the pipeline in the process of Spark's driver, by spark-submit or as a job of the platform: see "
    "docs/how-to/connect_and_clusters.md"
)
