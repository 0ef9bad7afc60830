"""The errors of local brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudevents_kafka.errors import CloudEventsKafkaError

if TYPE_CHECKING:
    from pathlib import Path


class BrokerFailed(CloudEventsKafkaError):
    """A local broker did not start, or died; ``log`` holds its last lines."""

    def __init__(self, reason: str, log_file: Path, log: str) -> None:
        super().__init__(reason, log_file, log)
        self.reason = reason
        self.log_file = log_file
        self.log = log

    def __str__(self) -> str:
        return f"{self.reason}\nLast lines of {self.log_file}:\n{self.log or '(empty)'}"
