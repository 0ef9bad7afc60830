"""`Event`: the attributes and the data of an event, with the methods of the official SDK's events."""

from cloudevents_kafka.event._event import (
    DataT_co,
    Event,
    binary_parts,
    has_reader,
    origin_of,
    raw_parts,
    select_attributes,
    stored_parts,
    unchecked_event,
)
from cloudevents_kafka.event._sdk import SdkEvent, check_event
