"""Finds Java and downloads jar files for the local Kafka and for Spark.

The function `find_java` returns a suitable Java on this machine. The function `resolve` returns the jars for
Maven coordinates from the user's cache; each jar is downloaded once and compared with a checksum. The
function `resolve` needs neither Maven nor Java. The function `cached` returns the same jars as `resolve`, but
never downloads jars.

Read `_jars` first, then `_coordinates` (the listed jars), `_repository` (the choice of the Maven repository),
`_web` and `_checksums` (the download and its checks), `_resolver` (jars that are not listed) and `_cache`;
read `_java` last.
"""

from cloudevents_kafka.jvm._cache import (
    CACHE_VARIABLE,
    CacheNotWritable,
    building,
    cache_folder,
    check_cache,
    locked,
)
from cloudevents_kafka.jvm._jars import NoJars, PlainHttp, cached, print_jars, resolve
from cloudevents_kafka.jvm._java import SUPPORTED, Java, NoJava, find_java
from cloudevents_kafka.jvm._progress import Progress
