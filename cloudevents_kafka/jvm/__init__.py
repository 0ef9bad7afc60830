"""Java and jar files for the local Kafka and for Spark.

`find_java` returns a suitable Java on this machine. `resolve` returns the jars of Maven coordinates from the
user's cache; they are downloaded once, and each is compared with a checksum. It needs neither Maven nor Java.
`cached` does not download.

Read `_jars` first, then `_coordinates` (which jars are listed), `_repository` (which Maven repository),
`_web` and `_checksums` (the download and its checks), `_resolver` (other jars), `_cache`; then `_java`.
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
