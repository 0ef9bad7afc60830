"""What a broker of some age carries of a record, as the library's own client sends it there."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.errors import EncodeError
from cloudevents_kafka.record import Record

_PRODUCE: Final = {"0.8": 0, "0.9": 1, "0.10": 2, "0.11": 3}
"""The newest version of Produce that the brokers of a version take."""


def carried(record: Record, broker: str) -> Record:
    """Send a record and take what arrives; `EncodeError` where it cannot go to such a broker."""
    from cloudevents_kafka.protocol import records  # which takes a while to load
    from cloudevents_kafka.protocol.client import batches
    from cloudevents_kafka.protocol.client.deadline import Deadline
    from cloudevents_kafka.protocol.errors import Unsupported

    version = _PRODUCE[broker]
    sent = records.Record(key=record.key, value=record.value, headers=record.headers)
    pending = batches.Pending("t", 0, sent, None, Deadline(0))
    try:
        batches.check_headers(pending, version)
    except Unsupported as error:
        raise EncodeError(str(error)) from error
    batch = batches.Batch(("t", 0), [pending], batches.NOBODY, -1)
    (arrived,) = records.Batches(batch.encoded(version, records.Codec.NONE)).records()
    return Record(key=arrived.key, value=arrived.value, headers=list(arrived.headers))
