"""Observers of the clients, which trace and count what a service sends, reads and handles.

`_protocol` has what clients call, and `calls` is the one place that does: clients import it only if they have
observers. `opentelemetry`, with the names in `_conventions`, makes spans, and `prometheus` figures.
"""

from cloudevents_kafka.clients.observing._protocol import Notice, Observer

__all__ = ["Notice", "Observer"]
