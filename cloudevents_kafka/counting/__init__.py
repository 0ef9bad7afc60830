"""Counts of records in bounded memory, for the pipeline and the command line.

The class `Labels` counts by label, and the class `TimeHistogram` counts by time; their modules' docstrings
say how exact these counts are. `RecordCounts` combines all counts of the records.
"""

from cloudevents_kafka.counting._labels import MAX_LABELS, Labels, limit_labels, limit_nested
from cloudevents_kafka.counting._records import (
    CUT,
    MOST_HEADERS,
    MOST_SAMPLED,
    NOT_EVENTS,
    SAMPLE_BYTES,
    SAMPLES,
    RecordCounts,
    Sample,
    key_label,
)
from cloudevents_kafka.counting._times import WIDTHS, TimeHistogram, TimeWindow
