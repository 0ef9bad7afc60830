"""Uses schemas to read payloads (events' data): `data_as`, `data_by_type`, and functions for the pipeline.

A payload never silently becomes null, and never silently loses some of its values. Either the whole payload
is read, or a text (the reason) says why the payload does not fit its schema. A payload does not fit for these
reasons: the payload has a wrong type, a required member is missing, a member occurs twice, bytes follow the
value, or a number does not fit its type. Spark's own functions ``from_json`` and ``from_avro`` read the
values of payloads, but do not find all of these errors, and have further limits. So a Java function
(``java/Shapes.java``) checks each payload before Spark's parsers read the payload, and the parsers report
whether they have read the whole payload. Python checks the payloads that Spark has not read completely. If
such a payload fits its schema, Python writes the payload again in a form that Spark can read. A payload never
makes a job fail.

Read the modules of this package in this order. The module `shape` describes the types of JSON values, and
contains the table of types; the module `json_schema` converts JSON Schema to a `Shape`. The modules `checks`
(with `scalars`) and `avro_checks` check payloads in Python. The module `schemas` contains all kinds of
schemas that `data_as` accepts. The modules `framed`, `avro_resolution` and `fetching` are for data that
serializers of a schema registry have written. The module `values` reads a column of payloads, and the module
`frames` contains the functions for DataFrames.
"""
