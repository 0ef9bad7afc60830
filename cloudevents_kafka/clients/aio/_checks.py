"""Checks whether aiokafka clients and their settings are suitable for this library."""

from __future__ import annotations

from typing import Any


def check_serializers(client: Any) -> None:
    """Raise `ValueError` if an aiokafka producer converts keys or values with a serializer."""
    _check_plain(client, "producer", "key_serializer", "value_serializer")


def check_deserializers(client: Any) -> None:
    """Raise `ValueError` if an aiokafka consumer converts keys or values with a deserializer."""
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
    """Raise `RuntimeError` if ``start()`` of an aiokafka client was not called."""
    name, is_started = "consumer", getattr(client, "_fetcher", client) is not None
    if hasattr(client, "_message_accumulator"):
        name, is_started = "producer", client._sender.sender_task is not None  # no public name shows it
    if not is_started:
        raise RuntimeError(
            f"the {name} must be started, got {type(client).__name__} before start(); await its start() first"
        )


def check_run(client: Any) -> None:
    """Raise an error if an aiokafka consumer is not suitable for a run.

    The consumer must be started, must have a group, and must not commit automatically.
    """
    if getattr(client, "_group_id", client) is None:
        raise ValueError(
            "group_id must be the name of a group for run(), which commits offsets to this group, got None; "
            "create the consumer with a group_id"
        )
    if getattr(client, "_enable_auto_commit", False):
        raise ValueError(
            "enable_auto_commit must be False for run(), got True; create the client with "
            "enable_auto_commit=False"
        )
    check_started(client)
