"""A demo with local Kafka and Spark, which sends events, reads them back, writes tables and compares all.

Read `run` first: `run_demo` runs all steps, and `format_report` formats the result. `traffic` mixes events
with invalid records, sends all these records and reads them back; `_shop` generates events. This package does
not import its modules, because `run` needs Spark.
"""
