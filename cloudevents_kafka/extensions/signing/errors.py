"""The errors of signing and verifying."""

from __future__ import annotations

from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.errors import CloudEventsKafkaError, preview
from cloudevents_kafka.event import Event


class SigningError(CloudEventsKafkaError):
    """The event cannot be signed as asked (extension verifiability)."""


class VerificationError(CloudEventsKafkaError):
    """``event`` is not what a trusted key signed, or nothing shows that it is: it must be discarded."""

    def __init__(self, reason: str, event: Event) -> None:
        super().__init__(reason, event)
        self.reason = reason
        self.event = event

    def __str__(self) -> str:
        which = f"event {preview(self.event.id)} of {preview(self.event.source)}"
        return f"{which} is not verified: {self.reason}; discard it (X-46, {SECTIONS['X-46']})"
