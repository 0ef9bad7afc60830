"""The archive of Spark's Java classes, for each Spark that tests start, with or without `local_session`."""

from __future__ import annotations

import os
from importlib.util import find_spec


def share_classes() -> None:
    """Let each Spark that is started from here use the archive in the cache, if there is one."""
    if find_spec("pyspark") is None:
        return
    from cloudevents_kafka.jvm import NoJava, find_java
    from cloudevents_kafka.spark.class_archive import ClassArchive

    try:
        options = ClassArchive.of(find_java()).options_to_read({})
    except NoJava:
        return
    if options:
        os.environ["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {options}".strip()
