"""Events that are whole, and break rules of attributes: strictly refused, leniently often taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloudevents_kafka.attributes.fast_validation import is_valid_fast
from cloudevents_kafka.attributes.validation import validate, without_lost
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.errors import InvalidEvent, Problem
from cloudevents_kafka.event import Event, unchecked_event


class InvalidAttributes(InvalidEvent):
    """The value is well formed, and ``event`` is what it says; only its attributes break rules."""

    def __init__(self, problems: Sequence[Problem], event: Event) -> None:
        super().__init__(problems)
        self.event = event


def build_event(
    attributes: dict[str, Any],
    payload: bytes | None,
    kind: DataKind,
    wire: tuple[str, bytes],
    problems: Sequence[Problem],
) -> Event:
    """Make an event of what was read from ``wire``, the name of a format and a value in it.

    Raises `InvalidEvent` with every problem: those of the form, which are given, and those
    of the attributes; `InvalidAttributes` where there are just these.
    """
    if not problems and is_valid_fast(attributes):
        return unchecked_event(attributes, payload, kind, wire)
    attributes, broken = validate(attributes)
    broken = without_lost(broken, (problem.attribute for problem in problems), attributes)
    if problems:
        raise InvalidEvent([*problems, *broken])
    event = unchecked_event(attributes, payload, kind, wire)
    if broken:
        raise InvalidAttributes(broken, event)
    return event
