"""The code that several built-in formats use, for unchanged events, bytes-like values, times and problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from cloudevents_kafka.attributes.fast_validation import accept
from cloudevents_kafka.attributes.timestamps import to_epoch
from cloudevents_kafka.attributes.types import AttributeValue
from cloudevents_kafka.attributes.validation import validate
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import Event, raw_parts, unchecked_event
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.problems import EncodeError, InvalidEvent, Problem
from cloudevents_kafka.record import to_bytes

_NOTHING: Final[Mapping[str, Any]] = {}


class BaseFormat(ABC):
    """The base class of the built-in formats except JSON, which has a separate, faster class."""

    name: ClassVar[str]

    def encode(self, event: Event) -> bytes:
        """Return an event as a structured value; an unchanged event is returned as the value that was read.

        Raises `EncodeError` if the format cannot represent the event.
        """
        attributes, wire = raw_parts(event)
        if wire is not None and wire[0] == self.name:
            return wire[1]
        return self._encode(event, attributes)

    def decode(self, value: bytes) -> Event:
        """Return the event that a structured value contains.

        Raises `InvalidEvent` if the value is not a valid event; the error lists all problems.
        """
        return self._decode(value if type(value) is bytes else to_bytes(value) or b"")

    def read_data(self, value: bytes, content_type: str | None) -> tuple[bytes | None, DataKind] | None:  # noqa: ARG002
        """Return the data in a valid structured value, read with another content type than the value has.

        None is returned if the content type does not matter. Raises `DataError` if the data is not of this
        type.
        """
        return None

    @abstractmethod
    def _encode(self, event: Event, attributes: dict[str, AttributeValue]) -> bytes:
        """Return the structured value for an event that is new or was changed."""

    @abstractmethod
    def _decode(self, value: bytes) -> Event:
        """Return the event that the structured value ``value`` contains; ``value`` must be bytes."""


class InvalidAttributes(InvalidEvent):
    """The value is well-formed, but attributes break rules; ``event`` has the attributes of the right form.

    ``received`` contains the attributes whose form is wrong, as they were received. ``event`` does not
    contain these attributes, and ``form_problems`` are the problems of their form. A value in ``received`` is
    None if the structured value has no value for the attribute.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        event: Event,
        form_problems: Sequence[Problem] = (),
        received: Mapping[str, Any] = _NOTHING,
    ) -> None:
        super().__init__(problems)
        self.event = event
        self.form_problems = form_problems
        self.received = received


def malformed(form: str, error: object, clause: str) -> InvalidEvent:
    """Return the error for a structured value that is not exactly one datum or message of a schema."""
    return InvalidEvent([Problem(None, f"the value must be one {form}, but {error}", clause)])


def build_event(
    attributes: dict[str, Any],
    payload: bytes | None,
    kind: DataKind,
    wire: tuple[str, bytes],
    form_problems: Sequence[Problem],
    *,
    received: Mapping[str, Any] = _NOTHING,
) -> Event:
    """Return the event in a structured value; ``wire`` is this value and the name of its format.

    ``received`` contains the optional attributes whose form is wrong, as they were received. Raises
    `InvalidEvent` if the event is invalid. The subclass `InvalidAttributes` is raised if only attributes in
    ``received`` or values of attributes are wrong. The error lists all problems.
    """
    if not form_problems and accept(attributes):
        return unchecked_event(attributes, payload, kind, wire)
    attributes, problems = validate(attributes, form_problems)
    if any(problem.attribute not in received for problem in form_problems):
        raise InvalidEvent(problems)
    event = unchecked_event(attributes, payload, kind, wire)
    if problems:
        raise InvalidAttributes(problems, event, form_problems, received)
    return event


def encode_epoch(name: str, text: str, form: str, clause: str, unit: int = 1) -> tuple[int, int]:
    """Return a Timestamp as seconds since the epoch and as nanoseconds that are a multiple of ``unit``.

    Raises `EncodeError` if these two numbers cannot express the time; the error message cites ``clause``.
    """
    try:
        seconds, nanos = to_epoch(text)
        if nanos % unit:
            raise ValueError("it has digits below a microsecond")  # noqa: TRY301  # as to_epoch does
    except ValueError as error:
        raise EncodeError(
            f"the {form} format cannot express {name} {preview(text)}: {error} "
            f"{clause}; change it, or use another format"
        ) from None
    return seconds, nanos
