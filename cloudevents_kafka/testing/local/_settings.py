"""The ports and settings of a single-node Kafka in KRaft mode that listens on 127.0.0.1 only."""

from __future__ import annotations

import itertools
import json
import random
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from cloudevents_kafka.primitives.plural import pluralize

HOST: Final = "127.0.0.1"

# Below the ports of outgoing connections (Linux from 32768, macOS from 49152): a client that tries to
# reach a stopped broker may otherwise receive the broker's own port and occupy it.
_PORTS: Final = range(18_000, 32_000)

# The internal topics exist in the prepared data, so these settings have no effect on it.
_INTERNAL_TOPIC_PREFIXES: Final = (
    "offsets.topic.",
    "transaction.state.log.",
    "share.coordinator.state.topic.",
    "node.",
    "process.",
)

# Internal topics have one partition and one replica.
COMMON_DEFAULTS: Final[dict[str, object]] = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    # The first consumer of a group does not have to wait for other consumers.
    "group.initial.rebalance.delay.ms": 0,
}
_DEFAULTS: Final[dict[str, object]] = {
    **COMMON_DEFAULTS,
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    # With the default, seven days, records with older timestamps would be deleted within five minutes.
    "log.retention.ms": -1,
    # The default is 128 MB.
    "log.cleaner.dedupe.buffer.size": 2_097_152,
}


class Ports(NamedTuple):
    """The port numbers of the broker's listeners for clients and for the controller."""

    client: int
    controller: int


def is_free(port: int) -> bool:
    """Return whether a server can listen on the port `port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Return different free ports; another program may use one of these ports before the caller uses it."""
    # Random, so that brokers that start at once choose different ports.
    candidates = random.sample(_PORTS, len(_PORTS))
    ports = list(itertools.islice(filter(is_free, candidates), count))
    if len(ports) < count:
        first, last = _PORTS.start, _PORTS.stop - 1
        raise OSError(f"{pluralize(count, 'port')} from {first} to {last} must be free on {HOST}")
    return ports


def write_server_properties(path: Path, ports: Ports, data: Path, overrides: Mapping[str, object]) -> None:
    """Write all settings of a broker to a file; the settings in `overrides` replace the default settings."""
    settings = {
        **_DEFAULTS,
        "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
        "listeners": f"PLAINTEXT://{HOST}:{ports.client},CONTROLLER://{HOST}:{ports.controller}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports.client}",
        "log.dirs": data,
        **overrides,
    }
    write_properties(path, settings)


def write_properties(path: Path, settings: Mapping[str, object]) -> None:
    """Write settings to a Java properties file."""
    # JSON escapes backslashes, line ends and other characters than ASCII in the same way.
    lines = (f"{name}={json.dumps(text)[1:-1]}\n" for name, text in as_texts(settings).items())
    path.write_text("".join(lines), encoding="ascii")


def as_texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the settings with values as text in Kafka's notation, such as "true" for True."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


def can_use_internal_topics(overrides: Mapping[str, object]) -> bool:
    """Return whether the internal topics in the prepared data fit a broker with these settings."""
    return not any(name.startswith(_INTERNAL_TOPIC_PREFIXES) for name in overrides)
