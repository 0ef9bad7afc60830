"""Read payloads of events by a schema: `data_as`, `data_by_type`, and the functions for the pipeline.

No payload silently becomes null, or a part of itself. A payload is read completely, or it does not fit, with
a reason: it has another type, a required member is missing, a member occurs twice, something follows its
value, or a number does not fit. Spark's own ``from_json`` and ``from_avro`` read the values, but do not find
all of these faults, and have limits of their own. So a function in Java (``java/Shapes.java``) checks each
payload first, and the parsers say whether they have read all of it. Python checks all other payloads; if one
fits, Python writes it again in a form that Spark reads. No payload ends a job.

Read the modules in this order. `shape` describes a value, and has the table of types; `json_schema` makes
shapes. `checks` (with `scalars`) and `avro_checks` are the checks in Python. `schemas` has all kinds of
schemas. `framed`, `avro_resolution` and `fetching` are for data of a schema registry. `values` reads a column
of payloads, and `frames` has the functions for DataFrames.
"""
