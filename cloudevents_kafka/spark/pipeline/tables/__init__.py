"""Tables of events and of bad records, in Parquet, Delta and Iceberg, in folders or in a catalog."""

from cloudevents_kafka.spark.pipeline.tables._columns import (
    KAFKA_COLUMNS,
    RECORD_DATE,
    TOLERATED,
    event_columns,
    filter_offsets,
    record_date,
    select_quarantine,
    table_of,
)
from cloudevents_kafka.spark.pipeline.tables._evolution import names_in, two_cases
from cloudevents_kafka.spark.pipeline.tables._iceberg import catalog_of
from cloudevents_kafka.spark.pipeline.tables._open import (
    find_tables,
    folder_format,
    name_parts,
    sibling_name,
    table_by_name,
    table_in_folder,
)
from cloudevents_kafka.spark.pipeline.tables._places import partition_sql
from cloudevents_kafka.spark.pipeline.tables._table import (
    LedgerChanged,
    Staged,
    Table,
)
