"""A real Apache Kafka on this machine, for tests: `LocalBroker`.

`_broker` defines `LocalBroker`. `_prepared` prepares the data with which a broker starts fast, and
`_settings` chooses the ports and writes the settings. `_process` and `_watchdog` run a program that ends when
its parent ends. `clients` uses short-lived Kafka clients.
"""

from cloudevents_kafka.testing.local._broker import LocalBroker
from cloudevents_kafka.testing.local._prepared import JVM_OPTIONS, KAFKA_VERSION, kafka_coordinates, prepare
from cloudevents_kafka.testing.local._process import BrokerFailed, Process, tail
from cloudevents_kafka.testing.local._settings import free_ports, is_free
