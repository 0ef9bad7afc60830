"""What the documented extensions ask of programs, a module for each.

* `_dataref`: store large data elsewhere, and fetch it;
* `_duplicates`: find events that arrive again;
* `_expiry`: skip events after their ``expirytime``;
* `_sequence`: number events, and find gaps between them;
* `_severity`: name severities;
* `_size`: measure records on the wire;
* `_tracing`: pass trace context along;
* `signing`: sign and verify events;
* `_advice`: the recommendations of all of them; read it last. `_opcua` has those for OPC UA messages.

The types and rules of extension attributes are in `attributes.documented_extensions` and
apply to every event.
"""

from cloudevents_kafka.extensions._advice import unmet_recommendations
from cloudevents_kafka.extensions._dataref import Fetch, Store, fetch_data, store_data
from cloudevents_kafka.extensions._duplicates import DuplicateTracker
from cloudevents_kafka.extensions._expiry import expires_at, is_expired, is_past_sunset, unexpired
from cloudevents_kafka.extensions._sequence import Order, SequenceTracker, Step, sequence_numbers
from cloudevents_kafka.extensions._severity import SEVERITY_NAMES, SeverityTracker, severity_name
from cloudevents_kafka.extensions._size import SIZE_LIMIT, size_problem, wire_size
from cloudevents_kafka.extensions._tracing import (
    Trace,
    hop_trace,
    is_traceparent,
    origin_trace,
    start_trace,
    with_hop_trace,
)

__all__ = [
    "SEVERITY_NAMES",
    "SIZE_LIMIT",
    "DuplicateTracker",
    "Fetch",
    "Order",
    "SequenceTracker",
    "SeverityTracker",
    "Step",
    "Store",
    "Trace",
    "expires_at",
    "fetch_data",
    "hop_trace",
    "is_expired",
    "is_past_sunset",
    "is_traceparent",
    "origin_trace",
    "sequence_numbers",
    "severity_name",
    "size_problem",
    "start_trace",
    "store_data",
    "unexpired",
    "unmet_recommendations",
    "wire_size",
    "with_hop_trace",
]
