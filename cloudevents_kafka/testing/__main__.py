"""Download Kafka's jars, and prepare data for local brokers, so that the brokers start fast.

The command prints the path of the folder with the prepared data.
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
