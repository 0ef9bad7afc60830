"""The settings for the client of a schema registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REGISTRY: Final = "schema.registry."
"""The prefix of the settings that are passed to the client of a schema registry."""


def registry_settings(url: str | None, settings: Mapping[str, str]) -> dict[str, str] | None:
    """Return the settings of the registry's client, with ``url`` if it is set.

    Without such settings, the result is None.
    """
    own = {
        name.removeprefix(REGISTRY): value for name, value in settings.items() if name.startswith(REGISTRY)
    }
    return {**own, "url": url} if url else own or None
