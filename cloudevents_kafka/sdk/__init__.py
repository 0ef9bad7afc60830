"""The official SDK's Kafka functions, implemented by this library: a program changes only one import.

This module contains the functions of the module ``cloudevents.core.bindings.kafka`` in the SDK's version 2.
The module `v1` contains the functions of version 1 (``cloudevents.kafka``, and ``cloudevents.v1.kafka`` in
version 2). All functions in both modules have the SDK's names and signatures. The functions accept and return
the SDK's own events and messages, and read all messages that the SDK reads. The errors of these functions are
subclasses both of this library's errors and of the SDK's errors. Events with specversion 0.3 are passed to
the SDK. The module `v1` works with either version of the SDK. The package `sdk` itself needs version 2 of the
SDK; if version 1 is installed, using a name of `sdk` raises an error that asks for version 2. Read the
modules in this order:

* `_installed`: the modules of the installed SDK;
* `_errors`: errors that are also errors of the SDK;
* `_reading` and `_writing`: read and write the attributes and the data of a message, for both versions;
* `_v1_reading` and `_v2_reading`: create an event of the SDK's version 1 or 2;
* `v1` and `_v2`: the functions of each version.
"""

from typing import TYPE_CHECKING, Any

from cloudevents_kafka.sdk._installed import HAS_VERSION_2, VERSION

if TYPE_CHECKING or HAS_VERSION_2:
    from cloudevents_kafka.sdk._v2 import (
        KafkaMessage,
        KeyMapper,
        from_binary,
        from_binary_event,
        from_kafka,
        from_kafka_event,
        from_structured,
        from_structured_event,
        to_binary,
        to_binary_event,
        to_structured,
        to_structured_event,
    )

__all__ = [
    "KafkaMessage",
    "KeyMapper",
    "from_binary",
    "from_binary_event",
    "from_kafka",
    "from_kafka_event",
    "from_structured",
    "from_structured_event",
    "to_binary",
    "to_binary_event",
    "to_structured",
    "to_structured_event",
]


def __getattr__(name: str) -> Any:
    """Raise an `ImportError` for a name that needs version 2 of the SDK."""
    if name in __all__:
        raise ImportError(
            f"cloudevents_kafka.sdk.{name} needs cloudevents>=2, got {VERSION}; "
            "install it, or use cloudevents_kafka.sdk.v1, which works with version 1"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
