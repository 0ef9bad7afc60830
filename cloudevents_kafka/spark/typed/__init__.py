"""Payloads of events by a schema: `data_as` and `data_by_type`, and what the pipeline needs of them.

The law: no payload becomes null, or a part of itself, in silence. A payload is read completely, or it
does not fit, with a reason: it has another type, no required member, a member twice, something behind
its value, or a number that does not fit.

Spark's own ``from_json`` and ``from_avro`` read the values, but do not find all of this, and have
limits of their own. So a function in Java (``java/Shapes.java``) looks at each payload first, and the
parsers say whether they have read all of it. Python checks all others. If a payload fits, Python writes
it again in a form that Spark reads. No payload ends a job.

Read `shape`, what a value must be, with the table of types; `json_schema`, which makes shapes; `checks` with
`scalars`, and `avro_checks`, by which Python decides; `schemas`, all kinds of schemas; `framed`,
`avro_resolution` and `fetching`, data of a schema registry; `values`, where the law is kept; and `frames`,
the functions of DataFrames.
"""
