"""Build an event from the parts that a format reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloudevents_kafka.attributes.fast_validation import is_valid_fast
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event, unchecked_event


class InvalidAttributes(InvalidEvent):
    """The value is well-formed; only attributes break rules. ``event`` has them unchecked."""

    def __init__(self, problems: Sequence[Problem], event: Event) -> None:
        super().__init__(problems)
        self.event = event


def build_event(
    attributes: dict[str, Any],
    payload: bytes | None,
    kind: DataKind,
    wire: tuple[str, bytes],
    form_problems: Sequence[Problem],
) -> Event:
    """Return the event of a structured value; ``wire`` is the format's name and the value.

    Raises `InvalidEvent` with all problems, as `InvalidAttributes` if the form has none.
    """
    if not form_problems and is_valid_fast(attributes):
        return unchecked_event(attributes, payload, kind, wire)
    attributes, problems = validate(attributes, form_problems)
    if form_problems:
        raise InvalidEvent(problems)
    event = unchecked_event(attributes, payload, kind, wire)
    if problems:
        raise InvalidAttributes(problems, event)
    return event
