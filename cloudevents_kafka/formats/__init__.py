"""Event formats: how a whole event becomes one value, and back (structured mode).

A format is found by the suffix of its media type: ``json`` for
``application/cloudevents+json``. JSON, Avro and Protobuf come with the library, and two
experimental ones: ``avro-compact``, and ``avrocompact``, the same as the Java SDK has it,
which is read only. `register_format` adds others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, Protocol, runtime_checkable

from cloudevents_kafka.event import Event
from cloudevents_kafka.registration import registering
