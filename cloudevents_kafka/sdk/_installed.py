"""The modules of the SDK that is installed.

Version 2 of the SDK contains the modules of version 1 in ``cloudevents.v1``. Version 1 contains these modules
in ``cloudevents``, and does not contain ``cloudevents.core``.
"""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

__all__ = [
    "HAS_VERSION_2",
    "VERSION",
    "AnyCloudEvent",
    "BaseCloudEventException",
    "CloudEventValidationError",
    "CustomExtensionAttributeError",
    "InvalidAttributeValueError",
    "MarshallerType",
    "MissingRequiredAttributeError",
    "UnmarshallerType",
    "exceptions",
    "http",
    "kafka",
    "kafka_exceptions",
]

VERSION: Final = version("cloudevents")
HAS_VERSION_2: Final = find_spec("cloudevents.core") is not None

if TYPE_CHECKING or HAS_VERSION_2:
    from cloudevents.core.exceptions import (
        BaseCloudEventException,
        CloudEventValidationError,
        CustomExtensionAttributeError,
        InvalidAttributeValueError,
        MissingRequiredAttributeError,
    )
    from cloudevents.v1 import exceptions, http, kafka
    from cloudevents.v1.abstract import AnyCloudEvent
    from cloudevents.v1.kafka import exceptions as kafka_exceptions
    from cloudevents.v1.sdk.types import MarshallerType, UnmarshallerType
else:
    from cloudevents import exceptions, http, kafka
    from cloudevents.abstract import AnyCloudEvent
    from cloudevents.kafka import exceptions as kafka_exceptions
    from cloudevents.sdk.types import MarshallerType, UnmarshallerType

    # Version 1 has one class of errors for all of these.
    BaseCloudEventException = CloudEventValidationError = exceptions.GenericException
    CustomExtensionAttributeError = InvalidAttributeValueError = exceptions.GenericException
    MissingRequiredAttributeError = exceptions.GenericException
