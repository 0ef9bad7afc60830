"""Checks of aiokafka's clients, which a service may have configured for its own loops."""

from __future__ import annotations

from typing import Any


def check_serializers(client: Any) -> None:
    """Raise `ValueError` if a producer changes keys or values."""
    _check_plain(client, "producer", "key_serializer", "value_serializer")


def check_deserializers(client: Any) -> None:
    """Raise `ValueError` if a consumer changes keys or values."""
    _check_plain(client, "consumer", "key_deserializer", "value_deserializer")


def _check_plain(client: Any, name: str, *options: str) -> None:
    for option in options:
        found = getattr(client, f"_{option}", None)
        if found is not None:
            raise ValueError(
                f"{option} of the {name} must be None, got {getattr(found, '__qualname__', found)}: keys and "
                f"values are the bytes of events; create the {type(client).__name__} without it"
            )


def check_started(client: Any) -> None:
    """Raise `RuntimeError` if ``start()`` of a client was forgotten."""
    name, is_started = "consumer", getattr(client, "_fetcher", client) is not None
    if hasattr(client, "_message_accumulator"):
        name, is_started = "producer", client._sender.sender_task is not None  # no public one
    if not is_started:
        raise RuntimeError(
            f"the {name} must be started, got {type(client).__name__} before start(); await its start() first"
        )


def check_run(client: Any) -> None:
    """Raise an error if a consumer cannot serve a run: it must be started, have a group, and not commit."""
    if getattr(client, "_group_id", client) is None:
        raise ValueError(
            "group_id must be the name of a group for run(), which commits offsets there, got None; "
            "create the consumer with it"
        )
    if getattr(client, "_enable_auto_commit", False):
        raise ValueError("enable_auto_commit must be False for run(), got True; create the client so")
    check_started(client)
