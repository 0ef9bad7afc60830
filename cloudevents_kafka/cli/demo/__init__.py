"""A demo on a local Kafka and Spark: send events, read them back, write them to tables, compare.

Read `run` first: its `run_demo` does all of it, and `format_report` formats the result. `traffic` mixes
events with invalid records, sends them and reads them back; `_shop` generates events. This package
imports none of them: `run` needs Spark.
"""
