"""A demo that sends events to a local Kafka, writes tables with Spark, and compares the results.

Read `run` first: `run_demo` runs all steps of the demo, and `format_report` formats the outcome. The module
`traffic` mixes events with invalid records, sends all of these records, and reads all of them back. The
module `_shop` generates the events. This package does not import its modules, because `run` needs Spark.
"""
