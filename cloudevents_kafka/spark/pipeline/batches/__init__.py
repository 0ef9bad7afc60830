"""The rows of one micro-batch: how rows are decoded, counted during the write, and read by Python."""

from cloudevents_kafka.spark.pipeline.batches._batch import Append, BatchWriter, KeptBatch
from cloudevents_kafka.spark.pipeline.batches._batch_rows import Rows
from cloudevents_kafka.spark.pipeline.batches._changes import row_changes
from cloudevents_kafka.spark.pipeline.batches._distinct import without_duplicates
from cloudevents_kafka.spark.pipeline.batches._out_of_range import is_out_of_range, read_out_of_range
