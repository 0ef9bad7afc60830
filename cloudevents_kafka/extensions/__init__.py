"""Functions for the documented CloudEvents extensions; each task has its own module.

* `_dataref`: find records that are too large, store large data elsewhere, and fetch the stored data;
* `_expiry`: skip events whose ``expirytime`` has passed;
* `_trackers`: find duplicates, gaps in sequences, and severities that contradict each other;
* `_tracing`: pass on the trace context with events;
* `signing`: sign and verify events with the envelopes and digests of `dsse`;
* `_advice`: check whether events follow the recommendations of all extensions; read this module last.

The types and the rules of extension attributes are defined in `attributes.documented_extensions`, and apply
to every event.
"""

from cloudevents_kafka.extensions._advice import unmet_recommendations
from cloudevents_kafka.extensions._dataref import SIZE_LIMIT, fetch_data, size_problem, store_data
from cloudevents_kafka.extensions._expiry import expires_at, is_expired, is_past_sunset, unexpired
from cloudevents_kafka.extensions._tracing import Trace, hop_trace, origin_trace, start_trace, with_hop_trace
from cloudevents_kafka.extensions._trackers import (
    DuplicateTracker,
    SequenceTracker,
    SeverityTracker,
    Step,
    sequence_numbers,
    severity_name,
)

__all__ = [
    "SIZE_LIMIT",
    "DuplicateTracker",
    "SequenceTracker",
    "SeverityTracker",
    "Step",
    "Trace",
    "expires_at",
    "fetch_data",
    "hop_trace",
    "is_expired",
    "is_past_sunset",
    "origin_trace",
    "sequence_numbers",
    "severity_name",
    "size_problem",
    "start_trace",
    "store_data",
    "unexpired",
    "unmet_recommendations",
    "with_hop_trace",
]
