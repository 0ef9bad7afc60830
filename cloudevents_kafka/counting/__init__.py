"""Counts of records in bounded memory, for any records: of the pipeline, of `report`, on terminals.

`Labels` and `TimeHistogram` count, each by a law that its module states; `RecordCounts` has them for records.
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
