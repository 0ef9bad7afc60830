"""Make sure that a local broker can start at once: Java, Kafka's jars, prepared data.

With ``--legacy`` the old ones as well. With ``--install-jdk``, or ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1``
in the environment, a Java is downloaded where none is found, and apt cannot install one.
"""

from __future__ import annotations

import sys

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import INSTALL_OPTION, install_java
from cloudevents_kafka.testing.local.old_brokers import fetch
from cloudevents_kafka.testing.local.prepared import prepare


def main() -> int:
    """Print where the prepared broker lies; 1 if it cannot be had."""
    try:
        install_java(download=True if INSTALL_OPTION in sys.argv[1:] else None)
        prepared = prepare()
        if "--legacy" in sys.argv[1:]:
            fetch()
            prepare("3.9.1")
    except CloudEventsKafkaError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{prepared.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
