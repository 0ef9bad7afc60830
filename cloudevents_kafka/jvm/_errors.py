"""The errors of this package: a missing Java, missing jars, a failed download."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.redaction import mask_urls


class JvmError(CloudEventsKafkaError):
    """The base class of `NoJava` and `NoJars`."""


class NoJava(JvmError):
    """No suitable Java was found.

    `required` names the supported versions, `searched` has a line for each place, `hint` says what to do.
    """

    def __init__(self, required: str, searched: Sequence[str], hint: str) -> None:
        super().__init__(required, tuple(searched), hint)
        self.required = required
        self.searched = tuple(searched)
        self.hint = hint

    def __str__(self) -> str:
        places = "\n".join(f"  - {line}" for line in self.searched)
        return f"no suitable Java: {self.required}. Searched:\n{places}\n{self.hint}"


class NoJars(JvmError):
    """The jars of `coordinates` are not in the cache and cannot be downloaded.

    `folder` is their place in the cache. `reason` and `hint` contain no credentials.
    """

    def __init__(self, coordinates: Sequence[str], folder: Path, reason: str, hint: str) -> None:
        super().__init__(tuple(coordinates), folder, mask_urls(reason), hint)
        self.coordinates = tuple(coordinates)
        self.folder = folder
        self.reason = mask_urls(reason)
        self.hint = hint

    def __str__(self) -> str:
        wanted = ", ".join(self.coordinates)
        return f"cannot fetch {wanted}: {self.reason}.\nThe jars belong in {self.folder}.\n{self.hint}"


class FetchFailed(Exception):
    """A download failed; `resolve` turns it into `NoJars`. `reason` contains no credentials."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(mask_urls(reason), hint)
        self.reason = mask_urls(reason)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.reason}. {self.hint}"


class PlainHttp(UserWarning):
    """The Maven repository is read by http, without TLS."""
