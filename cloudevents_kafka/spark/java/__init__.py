"""The fast path of `decode_events` and `encode_events`: Java functions that Spark calls for each row.

The Java sources are in the folder ``java`` of the repository; read ``Functions.java``, then ``Reader.java``.
``make jar`` compiles the sources into a jar in the folder ``jars``, with Spark's own compiler, so no JDK is
needed. The module `jar` finds this jar, and the module `reader` adds the jar to a session, including a
session of Spark Connect.
"""
