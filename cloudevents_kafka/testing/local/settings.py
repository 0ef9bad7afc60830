"""Settings of a single-node Kafka in KRaft mode that listens on 127.0.0.1 only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"

# Topics that the prepared data holds already: settings about them come too late for it.
_ABOUT_INTERNAL_TOPICS = (
    "offsets.topic.",
    "transaction.state.log.",
    "share.coordinator.state.topic.",
    "node.",
    "process.",
)

_FIXED: dict[str, object] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    # One node: everything internal has one partition and one copy.
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # Nobody else is coming: a first consumer need not wait for others.
    "group.initial.rebalance.delay.ms": 0,
    # The cleaner takes 128 MB otherwise.
    "log.cleaner.dedupe.buffer.size": 2_097_152,
}


@dataclass(frozen=True, slots=True)
class Ports:
    """Where clients connect, and where the controller listens."""

    client: int
    controller: int


def server_properties(ports: Ports, data: Path, overrides: Mapping[str, object]) -> dict[str, str]:
    """Give all settings; `overrides` win, booleans may be Python's."""
    settings = {
        **_FIXED,
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


def write_properties(path: Path, settings: Mapping[str, str]) -> None:
    """Write a Java properties file."""
    lines = (f"{name}={_escape(value)}\n" for name, value in settings.items())
    path.write_text("".join(lines), encoding="latin-1")


def fits_prepared(overrides: Mapping[str, object]) -> bool:
    """Say whether prepared data suits a broker with these settings."""
    return not any(name.startswith(_ABOUT_INTERNAL_TOPICS) for name in overrides)


def _escape(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
    return escaped.encode("ascii", "backslashreplace").decode("ascii")
