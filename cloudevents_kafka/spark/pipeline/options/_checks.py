"""Checks of single options: each function raises `ValueError` for an invalid value of its option.

`PipelineOptions` itself checks the rules that concern several options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from cloudevents_kafka.primitives.options import must_be
from cloudevents_kafka.primitives.redaction import mask_credentials
from cloudevents_kafka.primitives.spans import parse_span
from cloudevents_kafka.spark.pipeline._errors import IN_PROCESS
from cloudevents_kafka.spark.pipeline.notes import check_topic
from cloudevents_kafka.spark.pipeline.options._backfill_range import BackfillRange
from cloudevents_kafka.spark.pipeline.watching import split_address

# The pipeline sets these options, or Spark rejects them. Without includeHeaders, no record is an event.
_RESERVED: Final = frozenset(
    {
        "subscribe",
        "subscribePattern",
        "assign",
        "startingOffsets",
        "failOnDataLoss",
        "maxOffsetsPerTrigger",
        "includeHeaders",
        "kafka.bootstrap.servers",
    }
)

check_servers: Final = must_be("host:port of at least one broker", bool)
check_group: Final = must_be("the name of a consumer group, or None", bool)
check_start: Final = must_be(
    'earliest, latest, or offsets as JSON, such as {"orders": {"0": 17}} (-2 is earliest, -1 latest)',
    lambda start: start in {"earliest", "latest"} or _is_json_object(start),
)


def split_topics(topics: Iterable[str]) -> tuple[str, ...]:
    """Return the names in a list of topics; each text in the list is split at commas, as Spark splits it."""
    names = (name.strip() for name in ",".join(topics).split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def check_topics(name: str, topics: Iterable[str]) -> None:
    """Check names of topics; several names may be joined by commas."""
    check_names(name, split_topics(topics))


def check_names(name: str, topics: Iterable[str]) -> None:  # noqa: ARG001  # the signature of a check
    """Check names of topics."""
    try:
        for topic in topics:
            check_topic(topic)
    except ValueError as error:
        raise ValueError(f"{error}; for a regular expression, use topic_pattern (--topic-pattern)") from None


def check_pattern(name: str, pattern: str) -> None:
    """Check a regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{name} must be a regular expression, got {pattern!r}: {error}") from None


def check_location(name: str, location: str) -> None:  # noqa: ARG001  # the signature of a check
    """Check that a ``file:`` URL does not name another machine; paths and other URLs are always valid."""
    parts = urlsplit(location)
    if parts.scheme == "file" and parts.netloc not in {"", "localhost"}:
        raise ValueError(
            f"out and checkpoint must be folders of this machine if they are file: URLs, got "
            f"{location!r} with the host {parts.netloc!r}; write file:///PATH"
        )


def check_span(name: str, span: str) -> None:
    """Check a span of time with a unit, such as ``1h``."""
    parse_span(span, name)


def check_port(name: str, port: int | str) -> None:  # noqa: ARG001  # the signature of a check
    """Check that a port is a number, or an address of this machine with a port."""
    split_address(port)


def check_range(name: str, text: str) -> None:  # noqa: ARG001  # the signature of a check
    """Check the text of a backfill's range."""
    BackfillRange.of(text)


def check_master(name: str, master: str) -> None:
    """Check that a Spark master is not the URL of a Spark Connect server."""
    if master.startswith("sc://"):
        raise ValueError(
            f"{name} must be local[*], spark://HOST:7077 or another master of Spark, got {master!r}, which "
            f"is Spark Connect. {IN_PROCESS}"
        )


def check_source_settings(name: str, settings: Mapping[str, str]) -> None:
    """Check that a user does not set those options of Spark's Kafka source that the pipeline sets itself."""
    if reserved := sorted(_RESERVED & settings.keys()):
        raise ValueError(f"{name} must not contain {', '.join(reserved)}: the pipeline sets these itself")


def check_spark_settings(name: str, settings: Mapping[str, str]) -> None:  # noqa: ARG001  # the same
    """Check that no setting of Spark would show a password on Java's command line."""
    jars = {setting: value for setting, value in settings.items() if setting.startswith("spark.jars")}
    if exposed := [setting for setting, value in jars.items() if mask_credentials(value) != value]:
        raise ValueError(
            f"{', '.join(exposed)} must not have a URL with a user and a password: other users of this "
            "machine can read Java's command line; use a file of Ivy's settings (spark.jars.ivySettings)"
        )


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
