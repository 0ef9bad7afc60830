"""CloudEvents over Kafka: converters, clients, and a Spark pipeline.

This module exports the names that most programs need; the folders of the package export
more. Importing it imports neither a Kafka client nor Spark.
"""

from __future__ import annotations

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
from cloudevents_kafka.codecs import Codec
from cloudevents_kafka.consumer import ConsumeError, EventConsumer
from cloudevents_kafka.errors import (
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
from cloudevents_kafka.producer import Delivery, DeliveryError, EventProducer
from cloudevents_kafka.record import Record
from cloudevents_kafka.registry import register_codec, register_extension, register_format

__all__ = [
    "AttributeType",
    "BrokenEvent",
    "CloudEventsKafkaError",
    "Codec",
    "ConsumeError",
    "DataError",
    "DecodeError",
    "Decoded",
    "Delivery",
    "DeliveryError",
    "EncodeError",
    "Event",
    "EventConsumer",
    "EventProducer",
    "InvalidEvent",
    "NotAnEvent",
    "Problem",
    "Record",
    "Undecodable",
    "UnsupportedBatch",
    "UnsupportedFormat",
    "Verdict",
    "attribute_key",
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
