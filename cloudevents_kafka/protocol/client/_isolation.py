"""`isolated`: sets a field of a request, so that brokers return only committed records."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.messages.fetch import FetchRequest
from cloudevents_kafka.protocol.messages.offsets import ListOffsetsRequest, OffsetFetchRequest
from cloudevents_kafka.protocol.schema import Structure

_FIELDS: Final[dict[type[Structure], tuple[int, dict[str, int]]]] = {
    FetchRequest: (4, {"isolation_level": 1}),
    ListOffsetsRequest: (2, {"isolation_level": 1}),
    OffsetFetchRequest: (7, {"require_stable": True}),
}
"""The first version with a field for isolation, and the field's value for committed records (KIP-98,
KIP-447)."""

_Request = TypeVar("_Request", bound=FetchRequest | ListOffsetsRequest | OffsetFetchRequest)


def isolated(request: _Request, broker: Connection, *, committed_only: bool) -> _Request:
    """Return a request that reads only committed records or offsets.

    The request is returned unchanged if ``committed_only`` is false, or if the broker does not support the
    isolation field of the request. A broker that does not support the isolation field does not support
    transactions, or does not wait for transactions that commit offsets.
    """
    first, values = _FIELDS[type(request)]
    if not committed_only or broker.version(type(request)) < first:
        return request
    return msgspec.structs.replace(request, **values)
