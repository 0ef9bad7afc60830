"""Which kind of client a user has passed: confluent-kafka's, to be polled, or aiokafka's, to be awaited."""

from __future__ import annotations

import inspect

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
