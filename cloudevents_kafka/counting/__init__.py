"""Counts of records in bounded memory, for any records; the pipeline and the command line use them.

`Labels` counts by label, and `TimeHistogram` by time; the docstrings of their modules say how exact they are.
`RecordCounts` has the counts of records.
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
