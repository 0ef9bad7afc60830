"""The Kafka protocol binding: functions that read a record as an event and write an event as a record.

Read the modules in this order:

* `_headers`: the headers that carry attributes;
* `_sniffer`: finds the kind of a record from its headers;
* `_binary` and `_structured`: the two content modes;
* `_valid`: the reader of valid records;
* `_decode` and `_encode`: `from_record`, `decode` and `to_record`;
* `_keys`: key mappers, which choose the key of a record;
* `lenient`: lenient reading of known deviations.
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
