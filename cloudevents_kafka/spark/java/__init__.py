"""The fast path of `decode_events`: a function in Java that Spark calls for each row.

The sources are in ``java/``; read ``Functions.java``, then ``Reader.java``. `jar` compiles them with
Spark's own compiler, so building the wheel needs no JDK. `java_reader` adds the jar to a session,
also through Spark Connect.
"""
