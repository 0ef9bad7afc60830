"""The shapes of clients that `EventProducer` and `EventConsumer` wrap, and a check of them.

Any object with these methods is taken: confluent-kafka's clients, the fakes in `testing`,
a user's own. What lacks them is refused when it is handed in, not when it is first used.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol


class LibrdkafkaErrorCode(IntEnum):
    """The error codes of librdkafka's own that clients are checked for, by the names of ``KafkaError``."""

    PARTITION_EOF = -191
    """The end of a partition was read."""
    PURGE_INFLIGHT = -151
    """A purge or an aborted transaction took back a message that was sent."""
    PURGE_QUEUE = -152
    """A purge or an aborted transaction took back a message that was queued."""


class Producer(Protocol):
    """What `EventProducer` needs of a client: the shape of ``confluent_kafka.Producer``."""

    @property
    def produce(self) -> Callable[..., Any]:
        """Queue a message: topic, value, key, headers, on_delivery; BufferError where the queue is full."""

    def poll(self, timeout: float = ...) -> int:
        """Serve delivery reports, waiting for at most ``timeout`` seconds."""

    def flush(self, timeout: float = ...) -> int:
        """Wait for what is queued; return how many are left after ``timeout`` seconds."""


class Consumer(Protocol):
    """What `EventConsumer` needs of a client: the shape of ``confluent_kafka.Consumer``."""

    def poll(self, timeout: float = ...) -> Any:
        """Return a message, or None after ``timeout`` seconds."""

    def consume(self, num_messages: int = ..., timeout: float = ...) -> list[Any]:
        """Return up to ``num_messages`` that came within ``timeout`` seconds."""

    def close(self) -> Any:
        """Leave the group and close."""


# Clients of asyncio that do not have all that is needed are known by these: aiokafka's.
_ASYNCIO = ("send", "getone", "start")


def check_producer(client: object) -> None:
    """Raise `TypeError` for what does not have the methods of `Producer`."""
    _check(client, "Producer", ("produce", "poll", "flush"))


def check_consumer(client: object) -> None:
    """Raise `TypeError` for what does not have the methods of `Consumer`."""
    _check(client, "Consumer", ("poll", "consume", "close"))


def _check(client: object, kind: str, needed: tuple[str, ...]) -> None:
    problem = _problem(client, kind, needed)
    if problem is not None:
        methods = f"{', '.join(needed[:-1])} and {needed[-1]}"
        raise TypeError(
            f"{kind.lower()} must be a confluent_kafka.{kind}, or have its {methods}, got {problem}"
        )


def _problem(client: object, kind: str, needed: tuple[str, ...]) -> str | None:
    if isinstance(client, type):
        return f"the class {client.__name__}; make one of it first"
    name = type(client).__name__
    if isinstance(client, dict):
        return f"{name}; make a client of the settings: Event{kind}(confluent_kafka.{kind}(settings))"
    methods = {method: getattr(client, method, None) for method in needed}
    asyncio = [getattr(type(client), method, None) for method in _ASYNCIO]
    if any(map(inspect.iscoroutinefunction, (*methods.values(), *asyncio))):
        return f"{name}, an asyncio client; use {kind} of confluent_kafka instead"
    missing = [method for method, found in methods.items() if not callable(found)]
    return f"{name}, which has no {' and no '.join(missing)}" if missing else None
