"""A real Apache Kafka on this machine, for tests: `LocalBroker`.

The module `_broker` defines `LocalBroker`. The module `_prepared` prepares data, so that a broker starts
fast, and the module `_settings` chooses the ports and writes the settings. The modules `_process` and
`_watchdog` run a program that ends when its parent ends. The module `clients` uses short-lived Kafka clients.
"""

from cloudevents_kafka.testing.local._broker import LocalBroker
from cloudevents_kafka.testing.local._prepared import JVM_OPTIONS, KAFKA_VERSION, kafka_coordinates, prepare
from cloudevents_kafka.testing.local._process import BrokerFailed, Process, tail
from cloudevents_kafka.testing.local._settings import free_ports, is_free
