"""Observers of the clients, which trace and count the records that a service sends, reads and handles.

`_protocol` defines the methods of an observer. Only the module `calls` calls these methods; a client imports
`calls` only if observers were passed to it. `opentelemetry`, with the names in `_conventions`, makes spans,
and `prometheus` makes metrics.
"""

from cloudevents_kafka.clients.observing._protocol import Notice, Observer

__all__ = ["Notice", "Observer"]
