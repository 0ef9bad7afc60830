"""Run the command line in a process, send records, and parse its JSON lines."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from confluent_kafka import Producer

from cloudevents_kafka import Record

HEADERS = [
    part for name in ("specversion=1.0", "id=1", "source=/", "type=t") for part in ("--header", f"ce_{name}")
]
"""The options for the headers of an event in binary mode."""


def start(*args: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start the command line in a process whose standard streams are pipes."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-m", "cloudevents_kafka", *args], **{**pipes, **options})


def send(brokers: str, topic: str, *records: Record) -> None:
    """Send unchanged records in order, to their partition or to partition 0."""
    producer = Producer({"bootstrap.servers": brokers, "log_level": 0, "linger.ms": 0})
    for record in records:
        producer.produce(
            topic, record.value, record.key, partition=record.partition or 0, headers=list(record.headers)
        )
    assert producer.flush(20) == 0


def lines(text: str) -> list[dict[str, Any]]:
    """Parse JSON lines."""
    return [json.loads(line) for line in text.splitlines()]
