"""Tables of events and of other records, in Parquet, Delta and Iceberg, in folders or in a catalog."""

from cloudevents_kafka.spark.pipeline.tables._columns import (
    KAFKA_COLUMNS,
    RECORD_DATE,
    TOLERATED,
    error_rule,
    event_columns,
    filter_offsets,
    record_date,
    rule_of_error,
    select_quarantine,
    table_of,
)
from cloudevents_kafka.spark.pipeline.tables._evolution import names_in, two_cases
from cloudevents_kafka.spark.pipeline.tables._iceberg import catalog_of
from cloudevents_kafka.spark.pipeline.tables._open import (
    find_tables,
    folder_format,
    sibling_name,
    table_by_name,
    table_in_folder,
)
from cloudevents_kafka.spark.pipeline.tables._places import partition_sql
from cloudevents_kafka.spark.pipeline.tables._table import LedgerChanged, Staged, Table
