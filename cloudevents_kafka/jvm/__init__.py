"""Java and jars: what local Kafka and Spark need beside Python.

`find_java` looks for a Java that both can run on, `install_java` gets one
where there is none, and `resolve` turns Maven coordinates into jar files in the
user's cache, each compared with a checksum. ``python -m cloudevents_kafka.jvm`` makes
sure of a Java.
"""

from __future__ import annotations

from cloudevents_kafka.jvm.cache import cache_folder
from cloudevents_kafka.jvm.errors import JvmError, NoJars, NoJava, PlainHttp
from cloudevents_kafka.jvm.install import install_java
from cloudevents_kafka.jvm.jars import resolve
from cloudevents_kafka.jvm.java import Java, find_java

__all__ = [
    "Java",
    "JvmError",
    "NoJars",
    "NoJava",
    "PlainHttp",
    "cache_folder",
    "find_java",
    "install_java",
    "resolve",
]
