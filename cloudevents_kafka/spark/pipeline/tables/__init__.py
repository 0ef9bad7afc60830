"""Tables of events and of bad records, in Parquet, Delta and Iceberg, in folders or in a catalog."""

from cloudevents_kafka.spark.pipeline.tables._parquet import ParquetFiles
from cloudevents_kafka.spark.pipeline.tables._sink import (
    KEEP_HOURS,
    LedgerChanged,
    Maintenance,
    Staged,
    Table,
    quote,
    setting,
    write_settings,
)
from cloudevents_kafka.spark.pipeline.tables._table_names import (
    find_tables,
    folder_format,
    name_parts,
    sibling_name,
    table_by_name,
    table_in_folder,
)
from cloudevents_kafka.spark.pipeline.tables._tables import (
    KAFKA_COLUMNS,
    MOST_RULES,
    TOLERATED,
    DateOf,
    date_column,
    error_rule,
    event_columns,
    filter_offsets,
    rule_of_error,
    select_quarantine,
    table_of,
    texts_of_tolerated,
    tolerated_rules,
)
