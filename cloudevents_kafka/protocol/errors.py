"""The errors of the Kafka protocol.

::

    ProtocolError
    ├── Malformed                bytes that break the protocol
    │   └── Corrupt              a checksum that does not match its bytes
    ├── Truncated                bytes that end too early; the missing bytes may follow
    ├── Unencodable (ValueError) a value that its field or the version cannot carry
    ├── BrokerError              a response with an error code
    └── ClientError
        ├── Disconnected         a connection failed or was closed
        ├── DeadlineExceeded (TimeoutError)
        └── Unsupported          broker and client have no version in common

A partial message at the end of a message set is not an error, because brokers cut a message set at the
requested size. The functions that read message sets return the size of the partial message.
"""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode


class ProtocolError(Exception):
    """The base class of the protocol's errors.

    Examples:
        >>> from cloudevents_kafka.protocol import ProtocolError
        >>> from cloudevents_kafka.protocol.frames import decode_size
        >>> try:
        ...     decode_size(bytes.fromhex("ffffffff"))
        ... except ProtocolError as error:
        ...     print(error)
        at byte 0: a frame must have 0 to 104,857,600 bytes, got -1
    """


class Malformed(ProtocolError):
    """Bytes that break the protocol.

    ``rule`` is the broken rule. ``at`` is the index of the first bad byte (None if unknown). ``path`` is the
    path of the bad field, and begins with the outermost field ("" if unknown).

    Examples:
        >>> from cloudevents_kafka.protocol import Malformed
        >>> from cloudevents_kafka.protocol.records import Codec
        >>> try:
        ...     Codec.of(7)
        ... except Malformed as error:
        ...     print(error.rule)
        the codec must be 0 to 4, got 7
    """

    def __init__(self, rule: str, *, at: int | None = None, path: str = "") -> None:
        """Create the error for a broken rule."""
        self.rule: Final = rule
        self.at: Final = at
        self.path: Final = path
        super().__init__(_located(rule, at, path))


class Corrupt(Malformed):
    """A checksum that does not match the bytes that it covers.

    Examples:
        >>> from cloudevents_kafka.protocol import Corrupt
        >>> from cloudevents_kafka.protocol.records import Batches, Record, encode_batch
        >>> data = bytearray(encode_batch([Record(value=b"17")]))
        >>> data[-2] ^= 1
        >>> try:
        ...     list(Batches(bytes(data)).records())
        ... except Corrupt as error:
        ...     print(error)
        at byte 0: the CRC-32C must be 0a9f01c1, got 193d99b6
    """


class Truncated(ProtocolError):
    r"""Bytes that end too early; at least ``missing`` more bytes must follow.

    Examples:
        >>> from cloudevents_kafka.protocol import Truncated
        >>> from cloudevents_kafka.protocol.frames import decode_size
        >>> try:
        ...     decode_size(b"\x00\x00")
        ... except Truncated as error:
        ...     print(error.missing)
        2
    """

    def __init__(self, missing: int, *, at: int | None = None, path: str = "") -> None:
        """Create the error for bytes that are missing after index ``at``."""
        self.missing: Final = missing
        self.at: Final = at
        self.path: Final = path
        super().__init__(_located(f"{pluralize(missing, 'more byte is', 'more bytes are')} needed", at, path))


class Unencodable(ProtocolError, ValueError):
    """A value that does not fit its field, or a value without a field in the requested version.

    Examples:
        >>> from cloudevents_kafka.protocol import Unencodable
        >>> from cloudevents_kafka.protocol.records import Record, encode_message_set
        >>> try:
        ...     encode_message_set([Record(value=b"17", headers=[("trace", b"1")])])
        ... except Unencodable as error:
        ...     print(error)
        a message of magic 1 must not have headers; use magic 2 (Kafka 0.11 and later)
    """


class BrokerError(ProtocolError):
    """A response with an error code.

    ``code`` is the error code: a member of `ErrorCode` if the code is known, otherwise an int. ``name``,
    ``meaning`` and ``retriable`` are the properties of the code. ``subject`` is what the response is about (a
    topic and partition, or a group). ``broker_message`` is the text that the broker sent with the code. The
    client may add a ``hint`` to the text of the error.

    Examples:
        >>> from cloudevents_kafka.protocol import BrokerError
        >>> error = BrokerError(3, "orders[7]")
        >>> error.name, error.retriable
        ('UNKNOWN_TOPIC_OR_PARTITION', True)
        >>> print(error)
        orders[7]: UNKNOWN_TOPIC_OR_PARTITION (3): the broker does not have the topic or partition
    """

    def __init__(
        self,
        code: int,
        subject: str = "",
        broker_message: str | None = None,
        *,
        hint: str | None = None,
        codes: type[BrokerErrorCode] = ErrorCode,
    ) -> None:
        """Create the error for an error code; ``codes`` is the enumeration of the codes."""
        known = codes.find(code)
        self.code: Final[int] = code if known is None else known
        self.name: Final = f"ERROR_{code}" if known is None else known.name
        self.meaning: Final = "the code is unknown" if known is None else known.message
        self.retriable: Final = known is not None and known.retriable
        self.subject: Final = subject
        self.broker_message: Final = broker_message
        prefix = f"{subject}: " if subject else ""
        suffix = f"; the broker says: {broker_message}" if broker_message else ""
        suffix += f"; {hint}" if hint else ""
        super().__init__(f"{prefix}{self.name} ({code:d}): {self.meaning}{suffix}")


class ClientError(ProtocolError):
    """A failure of the communication between client and broker.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, ClientError
        >>> try:
        ...     Client("127.0.0.1:1", timeout=0.2).partitions("orders")
        ... except ClientError as error:
        ...     print(type(error).__name__)
        DeadlineExceeded
    """


class Disconnected(ClientError):
    """A connection that failed, or was closed before the broker answered.

    Examples:
        >>> from cloudevents_kafka.protocol import Disconnected, v07
        >>> try:
        ...     v07.Connection("127.0.0.1", 1)
        ... except Disconnected:
        ...     print("the broker cannot be reached")
        the broker cannot be reached
    """


class DeadlineExceeded(ClientError, TimeoutError):
    """A timeout; the broker may have processed the request.

    Examples:
        >>> from cloudevents_kafka.protocol import Client, DeadlineExceeded
        >>> import socket
        >>> with socket.create_server(("127.0.0.1", 0)) as silent:
        ...     address = "127.0.0.1:{}".format(silent.getsockname()[1])
        ...     try:
        ...         Client(address, timeout=0.2).metadata()
        ...     except DeadlineExceeded:
        ...         print("the broker did not answer in time")
        the broker did not answer in time
    """


class Unsupported(ClientError):
    """Broker and client have no common version of a request, or the broker does not support a feature.

    `Unsupported` is also raised if an optional package, such as cramjam, is not installed.

    Examples:
        >>> from cloudevents_kafka.protocol import Unsupported
        >>> from cloudevents_kafka.protocol.layout import layout_of
        >>> from cloudevents_kafka.protocol.messages.topics import MetadataRequest
        >>> try:
        ...     layout_of(MetadataRequest, 99)
        ... except Unsupported as error:
        ...     print(error)
        MetadataRequest must have a version in 0-13, got 99
    """


def _located(rule: str, at: int | None, path: str) -> str:
    where = " ".join(filter(None, [path, "" if at is None else f"at byte {at}"]))
    return f"{where}: {rule}" if where else rule
