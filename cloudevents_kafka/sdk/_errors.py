"""Errors that are also errors of both SDK versions, so that handlers for SDK errors catch these errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from cloudevents_kafka import errors
from cloudevents_kafka.attributes.types import REQUIRED
from cloudevents_kafka.sdk._installed import (
    BaseCloudEventException,
    CloudEventValidationError,
    CustomExtensionAttributeError,
    InvalidAttributeValueError,
    MissingRequiredAttributeError,
)
from cloudevents_kafka.sdk._installed import exceptions as v1

P = ParamSpec("P")
R = TypeVar("R")


class _Listed(CloudEventValidationError):
    """The error for wrong attributes in the SDK's version 2; ``errors`` lists the errors by attribute."""

    @property
    def errors(self) -> dict[str, list[BaseCloudEventException]]:  # type: ignore[override]  # it assigns it
        found: dict[str, list[BaseCloudEventException]] = {}
        for problem in getattr(self, "problems", ()):
            name = problem.attribute or ""
            found.setdefault(name, []).append(_sdk_error(name, problem))
        if isinstance(self, errors.NotAnEvent):
            present = {name.lower() for name, value in self.record.headers if value is not None}
            missing = [name for name in REQUIRED if f"ce_{name}" not in present]
            found |= {name: [MissingRequiredAttributeError(name)] for name in missing}
        return found


def _sdk_error(name: str, problem: errors.Problem) -> BaseCloudEventException:
    if problem.clause == "R-01":
        return MissingRequiredAttributeError(name)
    kind = CustomExtensionAttributeError if problem.clause == "N-01" else InvalidAttributeValueError
    return kind(name, str(problem))


class _Unread(_Listed, v1.MissingRequiredFields, v1.DataUnmarshallerError, ValueError):
    """The error for an unreadable message; a subclass of the errors of both SDK versions."""


class InvalidEvent(errors.InvalidEvent, _Listed, v1.InvalidRequiredFields, v1.DataMarshallerError):
    """The values do not form a valid event."""


class EncodeError(errors.EncodeError, v1.DataMarshallerError, BaseCloudEventException):
    """The event cannot be written in this mode, or a marshaller failed."""


class BrokenEvent(errors.BrokenEvent, _Unread):
    """The record is a CloudEvent that breaks rules."""


class BrokenData(errors.BrokenData, _Unread):
    """The record is a CloudEvent whose data cannot be decoded."""


class NotAnEvent(errors.NotAnEvent, _Unread):
    """The record is not a CloudEvent."""


class UnsupportedFormat(errors.UnsupportedFormat, _Unread):
    """The event format is not registered."""


class UnsupportedBatch(errors.UnsupportedBatch, _Unread):
    """The record is a batch of events, not a single event."""


_KINDS: Final[dict[type, Any]] = {
    kind.__bases__[0]: kind for kind in (InvalidEvent, EncodeError, *_Unread.__subclasses__())
}


def raises_sdk_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose errors are errors of this library, and also errors of the SDK."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except errors.CloudEventsKafkaError as error:
            raise as_sdk_error(error) from error.__cause__

    return call


def as_sdk_error(error: errors.CloudEventsKafkaError) -> errors.CloudEventsKafkaError:
    """Return an error of this library as an error that is also an error of the SDK."""
    if isinstance(error, BaseCloudEventException | v1.GenericException):
        return error
    kind = next(_KINDS[base] for base in type(error).__mro__ if base in _KINDS)
    converted: errors.CloudEventsKafkaError = kind.__new__(kind, *error.args)
    vars(converted).update(vars(error))
    return converted
