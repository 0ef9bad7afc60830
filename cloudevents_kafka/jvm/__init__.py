"""Finds Java and downloads jar files for the local Kafka and for Spark.

The function `find_java` returns a suitable Java on this machine. The function `resolve` returns the jars for
Maven coordinates from the user's cache; each jar is downloaded once and compared with a checksum. The
function `resolve` needs neither Maven nor Java. The function `cached` returns the same jars as `resolve`, but
only from the cache.

Read `_jars` first, then `_coordinates` (lists of jars), `_repository` (chooses the Maven repository), `_web`
and `_checksums` (download and check files), `_resolver` (finds jars that no list contains) and `_cache`. Read
`_java` last.
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
