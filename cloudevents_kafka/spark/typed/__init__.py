"""Uses schemas to read payloads of events: `data_as`, `data_by_type`, and functions for the pipeline.

A payload never silently becomes null, and never silently loses some of its values. Either the whole payload
is read, or a reason says why the payload does not fit its schema. These are the reasons: the payload has a
wrong type, a required member is missing, a member occurs twice, bytes follow the value, or a number does not
fit its type. Spark's own functions ``from_json`` and ``from_avro`` read the values, but do not find all of
these errors, and have further limits. So a Java function (``java/Shapes.java``) checks each payload before
Spark's parsers read it, and the parsers report whether they have read the whole payload. Python checks
payloads that Spark has not read. If such a payload fits its schema, Python writes the payload again in a form
that Spark can read. A payload never makes a job fail.

Read the modules in this order. `shape` describes a value, and contains the table of types; `json_schema`
makes shapes from JSON Schema. `checks` (with `scalars`) and `avro_checks` contain the checks in Python.
`schemas` contains all kinds of schemas. `framed`, `avro_resolution` and `fetching` are for data of a schema
registry. `values` reads a column of payloads, and `frames` contains the functions for DataFrames.
"""
