"""The settings of a single-node Kafka in KRaft mode that listens on 127.0.0.1 only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cloudevents_kafka.testing.local._ports import HOST, Ports

# The internal topics exist in the prepared data, so settings of these names come too late for it.
_INTERNAL_TOPIC_PREFIXES: Final = (
    "offsets.topic.",
    "transaction.state.log.",
    "share.coordinator.state.topic.",
    "node.",
    "process.",
)

_DEFAULTS: Final[dict[str, object]] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    # One node: internal topics have one partition and one replica.
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # The first consumer of a group need not wait for others.
    "group.initial.rebalance.delay.ms": 0,
    # The default is 128 MB.
    "log.cleaner.dedupe.buffer.size": 2_097_152,
}


def server_properties(ports: Ports, data: Path, overrides: Mapping[str, object]) -> dict[str, str]:
    """Return all settings as text; `overrides` replace the defaults and may have Python's booleans."""
    settings = {
        **_DEFAULTS,
        "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
        "listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.client}",
        "log.dirs": data,
        **overrides,
    }
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def write_properties(path: Path, settings: Mapping[str, object]) -> None:
    """Write a Java properties file."""
    lines = (f"{name}={_escape(str(value))}\n" for name, value in settings.items())
    path.write_text("".join(lines), encoding="latin-1")


def can_use_internal_topics(overrides: Mapping[str, object]) -> bool:
    """Return whether the prepared internal topics suit a broker with these settings."""
    return not any(name.startswith(_INTERNAL_TOPIC_PREFIXES) for name in overrides)


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.encode("ascii", "backslashreplace").decode("ascii")
