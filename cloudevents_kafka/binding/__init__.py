"""The Kafka protocol binding: read a record as an event, write an event as a record.

Read the modules in this order:

* `_headers`: the headers that carry attributes;
* `_sniffer`: the kind of a record, by its headers;
* `_binary` and `_structured`: the two content modes;
* `_decode` and `_encode`: `from_record`, `decode` and `to_record`;
* `_sdk_events`: events of the official SDK, written in one pass;
* `_keys`: key mappers;
* `_lenient`, `_lenient_headers`, `_lenient_json` and `_corrections`: lenient reading of known deviations.
"""

from cloudevents_kafka.binding._decode import Decoded, Undecodable, decode, from_record
from cloudevents_kafka.binding._encode import ContentMode, check_mode, encode, extra_headers, to_record
from cloudevents_kafka.binding._headers import attribute_of
from cloudevents_kafka.binding._keys import (
    KeyMapper,
    ReverseKeyMapper,
    attribute_key,
    first_of,
    key_to_attribute,
    partition_key,
)
from cloudevents_kafka.binding._lenient import lenient_mode
from cloudevents_kafka.binding._sniffer import Mode, Verdict, sniff

__all__ = [
    "ContentMode",
    "Decoded",
    "KeyMapper",
    "Mode",
    "ReverseKeyMapper",
    "Undecodable",
    "Verdict",
    "attribute_key",
    "attribute_of",
    "check_mode",
    "decode",
    "encode",
    "extra_headers",
    "first_of",
    "from_record",
    "key_to_attribute",
    "lenient_mode",
    "partition_key",
    "sniff",
    "to_record",
]
