"""Prepare a local broker, so that the next one starts at once: Java, Kafka's jars, prepared data.

``--legacy`` prepares the old brokers too. With ``--install-jdk`` or ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1``
a Java is downloaded if none is found and apt cannot install one.
"""

from __future__ import annotations

import sys

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import INSTALL_OPTION, install_java
from cloudevents_kafka.testing.local import prepare

_OLDEST_KRAFT = "3.9.1"  # the last version that supports the first versions of all messages


def main() -> int:
    """Print the folder of the prepared data; return 1 if the preparation fails."""
    try:
        install_java(download=True if INSTALL_OPTION in sys.argv[1:] else None)
        prepared = prepare()
        if "--legacy" in sys.argv[1:]:
            from cloudevents_kafka.testing.local.old_brokers import fetch_jars

            fetch_jars()
            prepare(_OLDEST_KRAFT)
    except CloudEventsKafkaError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{prepared.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
