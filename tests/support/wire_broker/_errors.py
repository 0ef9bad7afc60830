"""The end of a connection, and Kafka's error codes, as exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.schema import Structure


class ApiError(Exception):
    """An error code that answers a request, or one part of it; ``fields`` are other fields of the answer.

    Examples:
        >>> from wire_broker import ApiError, WireBroker
        >>> with WireBroker() as broker:
        ...     try:
        ...         broker.records("orders")
        ...     except ApiError as error:
        ...         print(error)
        UNKNOWN_TOPIC_OR_PARTITION (3): the broker does not have the topic or partition
    """

    def __init__(self, code: int, **fields: object) -> None:
        known = ErrorCode.find(code)
        super().__init__(f"error {code}" if known is None else f"{known.name} ({code}): {known.message}")
        self.code = code
        self.fields = fields


def no_transactions() -> ApiError:
    """Return the answer to a transactional id: an error that no client retries."""
    reason = "WireBroker has no transactions; test them with a LocalBroker"
    return ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, error_message=reason)


class CloseConnection(Exception):
    """The connection is closed without a response; a message is recorded."""


@contextmanager
def error_in(response: Structure) -> Iterator[None]:
    """Yield to a block, and write an `ApiError` that it raises into a response, or one part of it."""
    try:
        yield
    except ApiError as error:
        for name, value in {"error_code": error.code, **error.fields}.items():
            if name in response.__struct_fields__:
                setattr(response, name, value)
