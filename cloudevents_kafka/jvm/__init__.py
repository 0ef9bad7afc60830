"""Java and jar files for the local Kafka and for Spark.

`find_java` returns a suitable Java on this machine; `install_java` installs one if there is none.
`resolve` returns the jars of Maven coordinates from the user's cache, downloaded once and each
compared with a checksum; it needs neither Maven nor Java. `jar_sets` returns the sets of jars that
the package lists in full. ``python -m cloudevents_kafka.jvm`` installs a Java.

Read `_jars` first, then `_repository` (which Maven repository), `_resolver` (which jars), `_web` and
`_checksums` (the download and its checks), `_cache`; then `_java` and `_install`.
"""

from __future__ import annotations

from cloudevents_kafka.jvm._cache import CACHE_VARIABLE, building, cache_folder, locked
from cloudevents_kafka.jvm._errors import JvmError, NoJars, NoJava, PlainHttp
from cloudevents_kafka.jvm._install import INSTALL_OPTION, install_java
from cloudevents_kafka.jvm._jar_sets import jar_sets
from cloudevents_kafka.jvm._jars import resolve
from cloudevents_kafka.jvm._java import Java, find_java
from cloudevents_kafka.jvm._progress import Progress

__all__ = [
    "CACHE_VARIABLE",
    "INSTALL_OPTION",
    "Java",
    "JvmError",
    "NoJars",
    "NoJava",
    "PlainHttp",
    "Progress",
    "building",
    "cache_folder",
    "find_java",
    "install_java",
    "jar_sets",
    "locked",
    "resolve",
]
