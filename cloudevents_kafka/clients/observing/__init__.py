"""Observers, which trace and count the records that the Kafka clients of a service send, read and handle.

`_protocol` defines the methods of an observer. Only the module `calls` calls these methods. A client imports
the module `calls` only if observers were passed to the client. The module `opentelemetry`, with the names in
`_conventions`, makes spans; the module `prometheus` makes metrics.
"""

from cloudevents_kafka.clients.observing._protocol import Notice, Observer

__all__ = ["Notice", "Observer"]
