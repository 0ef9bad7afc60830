"""The names from OpenTelemetry's semantic conventions 1.44.0 that spans of this library use.

The conventions are still in development, and each version may change names, so this module contains all names
that spans use. `TRACE` and `CLAUSE` are names of this library, because the conventions have no names for
the two attributes. The attribute `CLAUSE` names the clause of the CloudEvents specification that a record
breaks. The attribute `TRACE` of a link says to which span the link refers: to the span that sent the record
(``hop``), or to the span in which the event originated (``origin``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from opentelemetry.trace import SpanKind

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"


class Operation(NamedTuple):
    """A messaging operation: its name, its type, and the kind of its spans."""

    name: str
    type: str
    kind: SpanKind


SEND: Final = Operation("send", "send", SpanKind.PRODUCER)
POLL: Final = Operation("poll", "receive", SpanKind.CLIENT)
PROCESS: Final = Operation("process", "process", SpanKind.CONSUMER)
COMMIT: Final = Operation("commit", "settle", SpanKind.CLIENT)

SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation.name"
TYPE: Final = "messaging.operation.type"
TOPIC: Final = "messaging.destination.name"
PARTITION: Final = "messaging.destination.partition.id"
OFFSET: Final = "messaging.kafka.offset"
KEY: Final = "messaging.kafka.message.key"
TOMBSTONE: Final = "messaging.kafka.message.tombstone"
COUNT: Final = "messaging.batch.message_count"
SIZE: Final = "messaging.message.body.size"
ERROR: Final = "error.type"
EVENT: Final = {  # by the attribute of the event
    "id": "cloudevents.event_id",
    "source": "cloudevents.event_source",
    "specversion": "cloudevents.event_spec_version",
    "type": "cloudevents.event_type",
    "subject": "cloudevents.event_subject",
}
TRACE: Final = "cloudevents_kafka.trace"
CLAUSE: Final = "cloudevents_kafka.clause"
