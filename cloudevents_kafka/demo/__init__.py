"""A demo on a local Kafka and Spark: send events, read them back, write them to tables, compare.

Read `run` first, whose `run_demo` does all of it. `_shop` generates events; `traffic` mixes
them with invalid records; `clients` sends them and reads them back; `_checks` compares all
counts and contents; `report` formats the result. This package imports none of them: `run` needs Spark.
"""
