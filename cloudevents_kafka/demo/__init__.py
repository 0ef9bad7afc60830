"""A demo on a local Kafka and Spark: send events, read them back, write them to tables, compare.

Read `run` first, whose `run_demo` does all of it and compares the counts and contents. `_shop` generates
events; `traffic` mixes them with invalid records; `clients` sends them and reads them back; `report`
formats the result. This package imports none of them: `run` needs Spark.
"""
