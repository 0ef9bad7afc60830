"""A demo on a local Kafka and Spark: send events, read them back, write them to tables, compare.

Read `run` first, which does it all. `_shop` generates events and `_invalid_records` other records;
`traffic` mixes them; `clients` sends them and reads them back; `_checks` compares all counts and
contents; `report` prints the result.
"""
