"""Observers of the clients, which trace and count what a service sends, reads and handles.

`_protocol` has the methods of an observer. Only `calls` calls them; clients import it only if they have
observers. `opentelemetry`, with the names in `_conventions`, makes spans, and `prometheus` counts.
"""

from cloudevents_kafka.clients.observing._protocol import Notice, Observer

__all__ = ["Notice", "Observer"]
