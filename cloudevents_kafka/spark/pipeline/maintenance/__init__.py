"""Functions that optimize tables, vacuum tables, or count the rows of tables, without a pipeline."""

from cloudevents_kafka.spark.pipeline._errors import WrongTable
from cloudevents_kafka.spark.pipeline.maintenance._contents import contents_of, read_contents
from cloudevents_kafka.spark.pipeline.maintenance._upkeep import (
    Maintenance,
    needed_formats,
    optimize_tables,
    vacuum_tables,
)

__all__ = ["Maintenance", "WrongTable", "optimize_tables", "vacuum_tables"]
