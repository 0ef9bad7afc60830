"""The Unix epoch, 1970-01-01T00:00:00Z, from which Kafka, Avro, Protobuf and Spark count time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
MILLISECOND: Final = timedelta(milliseconds=1)
SECOND: Final = timedelta(seconds=1)


def format_milliseconds(milliseconds: int) -> str:
    """Return milliseconds since the epoch as an RFC 3339 timestamp in UTC.

    Raises `OverflowError` if the time does not lie in the years 1 to 9999.
    """
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
