"""CloudEvents over Kafka: converters, clients, and a Spark pipeline.

This module exports the names that most programs need; the subpackages export further names. Importing this
module imports neither a Kafka client, nor asyncio, nor Spark. Read the package in this order:

* `record` and `problems`: a Kafka record, and the errors for events that break rules;
* `attributes`, `codecs`, `event` and `formats`: an event, its parts, and the event formats;
* `errors` and `binding`: the library's exceptions, and functions that decode records to events and encode
  events to records;
* `registry`: functions that register event formats, codecs and extension types; `extensions`: functions for
  the documented extensions;
* `sdk`: the functions of the official Python SDK for CloudEvents, under their original names;
* `clients`: producers, consumers and services that wrap synchronous and asyncio Kafka clients, and observers
  for traces and metrics;
* `protocol`: the messages of Kafka's protocol, and a pure-Python client; `testing`: a local Kafka broker, and
  fake clients for tests;
* `spark`: Spark DataFrames and a pipeline; `cli`: the command-line program;
* `primitives`: small modules, such as a module that masks secrets; `jvm`: functions that find Java and
  download jars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.binding import (
    Decoded,
    Undecodable,
    Verdict,
    attribute_key,
    decode,
    first_of,
    from_record,
    key_to_attribute,
    partition_key,
    sniff,
    to_record,
)
from cloudevents_kafka.clients.consumer import ConsumeError, ConsumerHealth, EventConsumer, RunResult
from cloudevents_kafka.clients.dead_letters import DeadLetter, DeadLetterError, DeadLetters, dead_letter
from cloudevents_kafka.clients.processor import EventProcessor, TransactionError
from cloudevents_kafka.clients.producer import Delivery, DeliveryError, EventProducer
from cloudevents_kafka.codecs import Codec
from cloudevents_kafka.errors import (
    BrokenData,
    BrokenEvent,
    CloudEventsKafkaError,
    DataError,
    DecodeError,
    EncodeError,
    InvalidEvent,
    NotAnEvent,
    Problem,
    UnsupportedBatch,
    UnsupportedFormat,
)
from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Record
from cloudevents_kafka.registry import register_codec, register_extension, register_format

if TYPE_CHECKING:
    from cloudevents_kafka.clients.aio import (
        AsyncDelivery,
        AsyncEventConsumer,
        AsyncEventProcessor,
        AsyncEventProducer,
    )

__version__ = "0.1.0"

__all__ = [
    "AsyncDelivery",
    "AsyncEventConsumer",
    "AsyncEventProcessor",
    "AsyncEventProducer",
    "AttributeType",
    "BrokenData",
    "BrokenEvent",
    "CloudEventsKafkaError",
    "Codec",
    "ConsumeError",
    "ConsumerHealth",
    "DataError",
    "DeadLetter",
    "DeadLetterError",
    "DeadLetters",
    "DecodeError",
    "Decoded",
    "Delivery",
    "DeliveryError",
    "EncodeError",
    "Event",
    "EventConsumer",
    "EventProcessor",
    "EventProducer",
    "InvalidEvent",
    "NotAnEvent",
    "Problem",
    "Record",
    "RunResult",
    "TransactionError",
    "Undecodable",
    "UnsupportedBatch",
    "UnsupportedFormat",
    "Verdict",
    "attribute_key",
    "dead_letter",
    "decode",
    "first_of",
    "from_record",
    "key_to_attribute",
    "partition_key",
    "register_codec",
    "register_extension",
    "register_format",
    "sniff",
    "to_record",
]

_ASYNCIO = ("AsyncDelivery", "AsyncEventConsumer", "AsyncEventProcessor", "AsyncEventProducer")


def __dir__() -> list[str]:
    """Return the names of this module, including the names that it imports at their first use."""
    return sorted({*__all__, *globals()} - {"Any", "TYPE_CHECKING", "annotations"})


def __getattr__(name: str) -> Any:
    """Import and return a class of the asyncio clients. The import is slow, so it waits for the first use."""
    if name in _ASYNCIO:
        from cloudevents_kafka.clients import aio

        return getattr(aio, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
