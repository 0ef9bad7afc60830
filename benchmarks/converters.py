"""The converters compared with those of the cloudevents SDK, with one event, in one process.

The event has 9 attributes and about 200 bytes of JSON; both validate it. The key of a record
is the event's partitionkey, as in the SDK. "constructed and encoded" starts from the same
Python dict each time: an Event checks its attributes and writes its data when it is
constructed, the SDK writes data when it encodes.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from importlib.metadata import version

from _timing import row, time_by_turns
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from cloudevents_kafka import Event, from_record, partition_key, to_record

DATA = {
    "sensor": "sensor-1",
    "value": 12.34,
    "unit": "celsius",
    "status": {"battery": 12, "flags": ["ok", "calibrated"], "site": "plant 12"},
    "note": "reading of sensor in section 12 taken automatically",
    "seq": 12,
}
ATTRIBUTES = {
    "id": "a89b3c1d-4d7b-4d9e-9d8a-0123456789ab",
    "source": "/plants/1/lines/4",
    "type": "com.example.order.created",
    "datacontenttype": "application/json",
    "subject": "sensor-123",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "partitionkey": "sensor-12",
}
TIME = datetime(2018, 4, 5, 17, 31, 0, 123456, tzinfo=UTC)
TIME_TEXT = "2018-04-05T17:31:00.123456Z"


def construct() -> Event:
    """Return the event of this library."""
    return Event(**ATTRIBUTES, time=TIME_TEXT, data=DATA)


def construct_sdk() -> CloudEvent:
    """Return the event of the SDK, from a copy, because its constructor changes its argument."""
    return CloudEvent({"specversion": "1.0", **ATTRIBUTES, "time": TIME}, DATA)


def main() -> None:
    """Print a row for each conversion."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--calls", type=int, default=300)
    options = parser.parse_args()
    ours, theirs, json = construct(), construct_sdk(), JSONFormat()
    binary = to_record(ours, key_mapper=partition_key)
    structured = to_record(ours, key_mapper=partition_key, mode="structured")
    their_binary = KafkaMessage(dict(binary.headers), binary.key, binary.value)
    their_structured = KafkaMessage(dict(structured.headers), structured.key, structured.value)
    without_key = KafkaMessage(their_structured.headers, None, their_structured.value)
    assert from_kafka(their_binary, json).get_data() == from_record(binary).data == DATA
    assert from_kafka(their_structured, json).get_id() == from_record(structured).id
    pairs = [
        (
            "binary decode, data untouched",
            lambda: from_record(binary),
            lambda: from_kafka(their_binary, json),
            8,
        ),
        (
            "binary decode, JSON data read",
            lambda: from_record(binary).data,
            lambda: from_kafka(their_binary, json).get_data(),
            5,
        ),
        ("binary encode", lambda: to_record(ours), lambda: to_binary(theirs, json), 5),
        (
            "structured encode",
            lambda: to_record(ours, mode="structured"),
            lambda: to_structured(theirs, json),
            5,
        ),
        ("structured decode", lambda: from_record(structured), lambda: from_kafka(their_structured, json), 5),
        (
            "structured decode, JSON data read",
            lambda: from_record(structured).data,
            lambda: from_kafka(their_structured, json).get_data(),
            None,
        ),
        (
            "structured decode, no key",
            lambda: from_record(structured),
            lambda: from_kafka(without_key, json),
            5,
        ),
        ("constructed", construct, construct_sdk, None),
        (
            "constructed and encoded, binary",
            lambda: to_record(construct()),
            lambda: to_binary(construct_sdk(), json),
            None,
        ),
        (
            "constructed and encoded, structured",
            lambda: to_record(construct(), mode="structured"),
            lambda: to_structured(construct_sdk(), json),
            None,
        ),
    ]
    versions = f"cloudevents {version('cloudevents')}, Python {sys.version.split()[0]}"
    print(f"{versions}; medians of {options.rounds} rounds")
    print(f"{'':<44} {'ours':>11} {'the SDK':>11} {'ratio':>7}")
    for name, own, other, target in pairs:
        timings = time_by_turns(own, other, rounds=options.rounds, calls=options.calls)
        print(row(name, *timings, target), flush=True)


if __name__ == "__main__":
    main()
