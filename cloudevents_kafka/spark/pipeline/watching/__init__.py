"""The metrics of a running pipeline, the thresholds of these metrics, and the summary of a run."""

from cloudevents_kafka.spark.pipeline.watching._figures import FIGURES, PREFIX, Lags
from cloudevents_kafka.spark.pipeline.watching._metrics import Metrics, split_address
from cloudevents_kafka.spark.pipeline.watching._reports import (
    BatchProgress,
    Summary,
    batch_progress,
    find_lags,
    lag_text,
    recent_progress,
    stopped_text,
)
from cloudevents_kafka.spark.pipeline.watching._thresholds import (
    Crossing,
    Threshold,
    ThresholdCrossed,
    Thresholds,
)
