"""Checks that refuse the same arguments as confluent-kafka's clients, with the same errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.primitives import zigzag
from cloudevents_kafka.testing.fakes._log import kafka_exception
from cloudevents_kafka.testing.fakes._message import FakeMessage

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

INVALID_ARGUMENT: Final = "Local: Invalid argument or configuration"
_MAX_TOPIC: Final = 512  # characters; librdkafka accepts longer names than a broker does
_FRAME: Final = 36  # the maximum size of a message's other fields, as librdkafka counts it
_MOST: Final = 8  # the real size is at most this number times the first estimate
_LOGICAL_OFFSETS: Final = (-1, -2, -1000, -1001)
_TAIL: Final = -2000  # offsets below this number count from the end
_INT: Final = range(-(2**31), 2**31)
_LONG: Final = range(-(2**63), 2**63)
_is_topic: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}").fullmatch


def is_topic(name: str) -> bool:
    """Return whether a broker accepts a name as the name of a topic."""
    return _is_topic(name) is not None


def check_seconds(seconds: float) -> None:
    """Raise `TypeError` unless the timeout is a number."""
    if not isinstance(seconds, float | int):
        raise TypeError(f"must be real number, not {type(seconds).__name__}")


def check_produced(topic: str, partition: int, timestamp: int) -> None:
    """Raise the errors of `produce` for a wrong topic, partition or timestamp."""
    if not isinstance(topic, str):
        raise TypeError(f"argument 1 must be str, not {type(topic).__name__}")
    if index(partition) not in _INT or index(timestamp) not in _LONG:
        raise OverflowError("Python int too large to convert to C integer")
    if "\0" in topic:
        raise ValueError("embedded null character")
    if len(topic.encode()) > _MAX_TOPIC:
        raise kafka_exception("_INVALID_ARG", f"Unable to produce message: {INVALID_ARGUMENT}")


def check_size(message: FakeMessage, limit: int) -> None:
    """Raise ``MSG_SIZE_TOO_LARGE`` if a message is larger than ``message.max.bytes``."""
    size = _FRAME + len(message.key() or b"") + len(message.value() or b"")
    headers = message.headers() or ()
    for name, value in headers:
        size += len(name) + (2 if value is None else 2 + len(value))
    if size * _MOST < limit:
        return
    for name, value in headers:
        size += len(name.encode()) - len(name)
        size += sum(zigzag.size(length) - 1 for length in (len(name.encode()), len(value or b"")))
    if size > limit:
        raise kafka_exception(
            "MSG_SIZE_TOO_LARGE", "Unable to produce message: Broker: Message size too large"
        )


def check_subscription(topics: Sequence[str], **callbacks: object) -> None:
    """Raise the errors of `subscribe` for topics that are not a list of names, or for a wrong callback."""
    if not isinstance(topics, list):
        raise TypeError("expected list of topic unicode strings")
    for name, callback in callbacks.items():
        if not (callback is None or callable(callback)):
            raise TypeError(f"{name} expects a callable")
    try:
        for name in map(str, topics):
            re.compile(name if name.startswith("^") else "")
    except re.error:
        topics = []
    if not topics or "" in topics:
        raise kafka_exception("_INVALID_ARG", f"Failed to set subscription: {INVALID_ARGUMENT}")


def check_place(place: object) -> None:
    """Raise `TypeError` if an object is not a ``TopicPartition``."""
    # The class is not compared, because importing its module takes 120 ms.
    if not (isinstance(getattr(place, "topic", None), str) and hasattr(place, "partition")):
        raise TypeError("expected cimpl.TopicPartition")


def check_places(places: Iterable[TopicPartition] | None) -> None:
    """Raise `TypeError` if an object is not a list of ``TopicPartition``."""
    if not isinstance(places, list):
        raise TypeError("requires list of TopicPartition")
    for place in places:
        check_place(place)


def check_message(message: Any) -> None:
    """Raise `TypeError` if an object is not a message; if the message contains an error, raise this error."""
    if not callable(getattr(message, "error", None)):
        raise TypeError("expected confluent_kafka.cimpl.Message")
    if (error := message.error()) is not None:
        raise kafka_exception(error.name(), error.str())


def is_offset(offset: int) -> bool:
    """Return whether a partition can be assigned with this start offset."""
    return offset >= 0 or offset in _LOGICAL_OFFSETS or offset <= _TAIL
