"""The tests with a Spark session that `make test` runs; `make release` runs all others.

Each costs one to ten seconds of a processor. A new test is one of the others, unless it is the sample of
something that no test here has. Tests without a session run each time.
"""

from __future__ import annotations

from typing import Final

IN_EACH_RUN: Final = {
    "backfill/test_backfill.py": ("test_gaps_are_filled",),
    "batches/test_batch.py": (
        "test_kept_rows",
        "test_records_that_are_read_twice",
        "test_records_that_were_not_planned",
        "test_rows_and_counts",
    ),
    "landing/test_distinct_landing.py": ("test_history",),
    "landing/test_fan_out.py": (
        "test_catalog_in_memory",
        "test_tables_by_type",
        "test_tables_without_commits_are_checked",
    ),
    "landing/test_function_landing.py": ("test_each_batch",),
    "landing/test_random_landings.py": ("test_random_histories",),
    "landing/test_restored_checkpoint.py": (
        "test_folder_and_checkpoint_that_disagree",
        "test_store_of_hadoop",
    ),
    # The way of users, from topic to table, with Spark's defaults; `test_fan_out` has that to Parquet.
    "landing/test_table_landing.py": ("test_each_record_lands_once", "test_killed_between_commits"),
    "landing/test_typed_landing.py": (
        "test_a_table_has_one_schema",
        "test_data_by_type",
    ),
    "landing/test_upsert_reading.py": ("test_history",),
    "notes/test_routes.py": ("test_spark_chooses_as_python", "test_time_of_a_pattern"),
    "replays/test_replay.py": ("test_killed_between_renames",),
    "tables/test_changing_tables.py": ("test_cells",),
    "tables/test_table.py": (
        "test_another_format",
        "test_each_batch_once",
        "test_no_catalog",
        "test_one_of_two_commits",
    ),
    "test_bad_days.py": (
        "test_read_only_folder",
        "test_renames_are_refused",
    ),
    "test_contents.py": ("test_a_table_of_a_catalog",),
    "test_docstrings.py": ("test_examples_run",),
    "test_examples.py": ("test_pages_run",),
    "test_fresh_start.py": ("test_corrected_start", "test_wrong_starts"),
    "test_landed_before.py": ("test_tables",),
    "test_many_topics.py": ("test_the_ranges_of_any_number_of_topics",),
    "test_restarts.py": (
        "test_a_checkpoint_that_cannot_be_created",
        "test_a_setting_that_the_source_refuses",
        "test_restarted_once",
    ),
    "test_timestamps.py": ("test_microseconds",),
    "test_transactions.py": ("test_aborted_transactions",),
    "topics/test_forgotten_topic.py": ("test_deleted_while_it_is_read",),
    "topics/test_recreated_topic.py": (
        "test_recreated_before_the_start",
        "test_recreated_under_way",
    ),
    "watching/test_watched_pipelines.py": (
        "test_lag_of_each_partition",
        "test_listener",
        "test_watched",
    ),
}
"""The names of functions by file."""
