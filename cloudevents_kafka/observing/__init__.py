"""Observers of the clients: what traces and counts the records that a service sends and handles.

Read the modules in this order:

* `_protocol`: `Observer`, the methods that clients call, and `Notice`, what they are called with;
* `calls`: the one place that calls them, which clients import only if they have observers;
* `opentelemetry` with `_conventions`: spans;
* `prometheus`: figures.
"""

from cloudevents_kafka.observing._protocol import Notice, Observer

__all__ = ["Notice", "Observer"]
