"""The errors of this room: no Java, or no jars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.redaction import mask_urls

if TYPE_CHECKING:
    from pathlib import Path


class JvmError(CloudEventsKafkaError):
    """What runs on Java cannot be had on this machine."""


class NoJava(JvmError):
    """No suitable Java was found; ``looked`` says what was seen where."""

    def __init__(self, wanted: str, looked: Sequence[str], hint: str) -> None:
        super().__init__(wanted, tuple(looked), hint)
        self.wanted = wanted
        self.looked = tuple(looked)
        self.hint = hint

    def __str__(self) -> str:
        seen = "\n".join(f"  - {line}" for line in self.looked)
        return f"no suitable Java: {self.wanted}. Looked at:\n{seen}\n{self.hint}"


class FetchFailed(Exception):
    """A download failed for ``reason``, without credentials of URLs; ``hint`` says what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(mask_urls(reason), hint)
        self.reason = mask_urls(reason)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.reason}. {self.hint}"


class PlainHttp(UserWarning):
    """Jars come by http, without TLS: whoever is on the way can change them."""


class NoJars(JvmError):
    """Jars of ``coordinates`` could not be fetched into ``folder``, for ``reason``, without credentials."""

    def __init__(self, coordinates: Sequence[str], folder: Path, reason: str, hint: str) -> None:
        super().__init__(tuple(coordinates), folder, mask_urls(reason), hint)
        self.coordinates = tuple(coordinates)
        self.folder = folder
        self.reason = mask_urls(reason)
        self.hint = hint

    def __str__(self) -> str:
        wanted = ", ".join(self.coordinates)
        return f"cannot fetch {wanted}: {self.reason}.\nThe jars belong into {self.folder}.\n{self.hint}"
