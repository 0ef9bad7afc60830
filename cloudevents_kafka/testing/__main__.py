"""Prepare a local broker, so that the next one starts at once: Kafka's jars, prepared data.

The folder of the prepared data is printed.
"""

import sys

from cloudevents_kafka.errors import CloudEventsKafkaError
from cloudevents_kafka.testing.local import prepare

if __name__ == "__main__":
    try:
        prepared = prepare()
    except CloudEventsKafkaError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{prepared.folder}\n")
