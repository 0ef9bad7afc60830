"""What a failed query says in a hundred lines of Java, in a few that help."""

from __future__ import annotations

import re
from typing import Final

from cloudevents_kafka.errors import CloudEventsKafkaError

_LONGEST: Final = 600

_ADVICE: Final = {
    "expired": (
        "records expired before they were read, or a topic is not read any more. "
        "To go on with what is there, allow data loss (--allow-data-loss); "
        "the summary then tells which offsets had no record"
    ),
    "no topic": "there is no such topic: check its name, or create it first",
    "no broker": "no broker answered: check the bootstrap servers and the security settings",
    "refused": "the broker refused: check the security settings and the rights on the topic",
    "two": "another pipeline uses the same checkpoint: give each its own folder",
    "memory": (
        "Spark ran out of memory: read fewer records at a time (--max-records), "
        "or give it more (-X spark.driver.memory=4g)"
    ),
}
_SIGNS: Final = (
    (r"KAFKA_DATA_LOSS|[Ss]ome data may have been lost|failOnDataLoss", "expired"),
    (r"UnknownTopicOrPartition|does not host this topic-partition", "no topic"),
    (r"SaslAuthentication|SslAuthentication|AuthorizationException", "refused"),
    (r"TimeoutException|No resolvable bootstrap urls", "no broker"),
    (r"Concurrent update to the log|CONCURRENT_STREAM_LOG_UPDATE", "two"),
    (r"OutOfMemoryError", "memory"),
)


class PipelineFailed(CloudEventsKafkaError):
    """The pipeline stopped by itself; what has landed is whole, and a new start goes on after it."""


def explained(text: str) -> str:
    """Tell what happened, first in Spark's own words, then what to do."""
    advice = next((_ADVICE[key] for sign, key in _SIGNS if re.search(sign, text)), None)
    return f"Spark stopped: {_cause(text)}" + (f"\n{advice}" if advice else "")


def _cause(text: str) -> str:
    """Find the innermost cause: the last ``Caused by``, or error of Python's, else the first lines."""
    java = re.findall(r"^Caused by: (.+)$", text, re.MULTILINE)
    python = re.findall(r"^\s*((?:\w+\.)*\w+(?:Error|Exception): .+)$", text, re.MULTILINE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = (java or python or [" ".join(lines[:3])])[-1]
    return cause if len(cause) <= _LONGEST else f"{cause[:_LONGEST]}…"
