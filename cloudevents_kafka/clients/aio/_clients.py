"""Which kind of client a user has passed, and its subscription, by which partitions that go are handed over.

confluent-kafka's clients are polled, and aiokafka's awaited.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

from cloudevents_kafka.clients._protocols import check_client


def is_awaited(client: object, protocol: type, *methods: str) -> bool:
    """Return whether these methods of a client are coroutines, as those of aiokafka are.

    Raises `TypeError` unless they are, or the client has the methods of ``protocol``.
    """
    kind = type(client)
    if all(inspect.iscoroutinefunction(getattr(kind, method, None)) for method in methods):
        return True
    if any(inspect.iscoroutinefunction(getattr(kind, method, None)) for method in ("produce", "consume")):
        raise TypeError(
            f"{protocol.__name__.lower()} must be a plain confluent_kafka.{protocol.__name__} or a client of "
            f"aiokafka, got {kind.__name__}, which does not accept headers; "
            f"pass confluent_kafka.{protocol.__name__}"
        )
    check_client(client, protocol)
    return False


class Revoke(Protocol):
    """Hand over partitions that are revoked or lost; the result is awaited for a client that is awaited."""

    def __call__(self, partitions: Any, *, lost: bool) -> Awaitable[None] | None: ...


def subscribe(client: Any, topics: Sequence[str], revoke: Revoke, *, awaited: bool) -> None:
    """Subscribe a client to topics, or to patterns that begin with ``^``."""
    if isinstance(topics, str):
        raise TypeError(f"topics must be a list of names, got {topics!r}; pass [{topics!r}]")
    names = list(topics)
    if not awaited:
        on_revoke = partial(_call, revoke, lost=False)
        client.subscribe(names, on_revoke=on_revoke, on_lost=partial(_call, revoke, lost=True))
        return
    patterns = [name for name in names if name.startswith("^")]
    if patterns and len(names) > 1:
        raise ValueError(
            f"topics must be one pattern or names for aiokafka, got {names}; join the patterns by |"
        )
    chosen = {"pattern": patterns[0]} if patterns else {"topics": names}
    client.subscribe(**chosen, listener=_listener(revoke))


def _call(revoke: Revoke, _: Any, partitions: Any, *, lost: bool) -> None:
    revoke(partitions, lost=lost)


def _listener(revoke: Callable[..., Awaitable[None] | None]) -> Any:
    from aiokafka import ConsumerRebalanceListener  # installed, as the client is aiokafka's

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
        async def on_partitions_revoked(self, revoked: Any) -> None:
            waiting = revoke(revoked, lost=False)
            if waiting is not None:
                await waiting

        def on_partitions_assigned(self, assigned: Any) -> None:
            """Do nothing: records say which partitions are new."""

    return Listener()
