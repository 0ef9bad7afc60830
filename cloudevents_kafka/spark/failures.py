"""What a failed query says in a hundred lines of Java, in a few that help."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 600

# What is found in Spark's text, and what to do about it.
_KNOWN: Final = (
    (
        r"KAFKA_DATA_LOSS|[Ss]ome data may have been lost|failOnDataLoss",
        "records expired, or a topic was deleted, before they were read. "
        "To go on with what is there, allow data loss (--allow-data-loss); "
        "the summary then tells which offsets had no record",
    ),
    (
        r"UnknownTopicOrPartition|does not host this topic-partition",
        "there is no such topic: check its name, or create it first",
    ),
    (
        r"Timed out waiting for a node assignment|TimeoutException|No resolvable bootstrap urls|ConfigException.*bootstrap",
        "no broker answered: check the bootstrap servers and the security settings",
    ),
    (
        r"SaslAuthenticationException|SslAuthenticationException|AuthorizationException",
        "the broker refused: check the security settings and the rights on the topic",
    ),
    (
        r"Concurrent update to the log|MultipleStreamsException|CONCURRENT_STREAM_LOG_UPDATE",
        "another pipeline uses the same checkpoint: give each its own folder",
    ),
    (
        r"OutOfMemoryError",
        "Spark ran out of memory: read fewer records at a time (--max-records), "
        "or give it more (-X spark.driver.memory=4g)",
    ),
)


def explained(text: str) -> str:
    """Tell what happened, first in Spark's own words, then what to do."""
    advice = next((advice for pattern, advice in _KNOWN if re.search(pattern, text)), None)
    words = _cause(text)
    return f"Spark stopped: {words}" + (f"\n{advice}" if advice else "")


def _cause(text: str) -> str:
    """Find the innermost cause: the last ``Caused by``, else the first line that says something."""
    causes = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    cause = causes[-1] if causes else " ".join(lines[:3])
    return cause if len(cause) <= _LONGEST else f"{cause[:_LONGEST]}…"
