"""Prepare a local broker, so that the next one starts at once: Java, Kafka's jars, prepared data.

With ``--install-jdk`` or ``CLOUDEVENTS_KAFKA_INSTALL_JDK=1``
a Java is downloaded if none is found and apt cannot install one. The folder of the prepared data is printed.
"""

from __future__ import annotations

import sys

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.jvm import INSTALL_OPTION, install_java
from cloudevents_kafka.testing.local import prepare

if __name__ == "__main__":
    try:
        install_java(download=INSTALL_OPTION in sys.argv)
        prepared = prepare()
    except CloudEventsKafkaError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{prepared.folder}\n")
