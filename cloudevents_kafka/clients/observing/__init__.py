"""Observers that trace and count the records that the clients of a service send, read and handle.

`_protocol` defines the methods of an observer. Only functions of the module `calls` use these methods. A
client imports `calls` only if observers were passed to the client. `opentelemetry`, with the names in
`_conventions`, makes spans, and `prometheus` makes metrics.
"""

from cloudevents_kafka.clients.observing._protocol import Notice, Observer

__all__ = ["Notice", "Observer"]
