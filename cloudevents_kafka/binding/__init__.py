"""The Kafka protocol binding: functions that read a record as an event and write an event as a record.

Read the modules in this order:

* `_headers`: the names of the headers that carry attributes;
* `_sniffer`: finds out from the headers whether a record is an event, and in which mode;
* `_binary` and `_structured`: the two content modes;
* `_valid`: reads records that are valid events;
* `_decode` and `_encode`: `from_record`, `decode` and `to_record`;
* `_keys`: key mappers, which choose the key of a record;
* `lenient`: reads records that deviate from the specification in known ways.
"""

from cloudevents_kafka.binding._decode import Decoded, Undecodable, decode, from_record
from cloudevents_kafka.binding._encode import check_header_names, check_mode, encode, extra_headers, to_record
from cloudevents_kafka.binding._headers import attribute_of
from cloudevents_kafka.binding._keys import (
    KeyMapper,
    ReverseKeyMapper,
    attribute_key,
    check_key_mapper,
    first_of,
    key_to_attribute,
    partition_key,
)
from cloudevents_kafka.binding._sniffer import ContentMode, Mode, Verdict, sniff
from cloudevents_kafka.binding.lenient import lenient_mode
