"""The fast path of `decode_events` and `encode_events`: functions in Java that Spark calls for each row.

The sources are in ``java`` in the repository; read ``Functions.java``, then ``Reader.java``. ``make jar``
compiles them into ``jars`` with Spark's own compiler, so that it needs no JDK. `jar` is the file, and
`reader` adds it to a session, also through Spark Connect.
"""
