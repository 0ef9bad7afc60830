"""The errors of the Kafka protocol.

::

    ProtocolError
    ├── Malformed                bytes that break the protocol
    │   └── Corrupt              a checksum that does not match its bytes
    ├── Truncated                bytes that end too early; the missing ones may follow
    ├── Unencodable (ValueError) a value that its field or the version cannot carry
    ├── BrokerError              a response with an error code
    └── ClientError
        ├── Disconnected         a connection failed or was closed
        ├── DeadlineExceeded (TimeoutError)
        └── Unsupported          broker and client have no version in common

A partial message at the end of a message set is not an error: brokers cut the set at the
requested size, and the readers of sets return the size of the partial message.
"""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol.error_codes import BrokerErrorCode, ErrorCode


class ProtocolError(Exception):
    """The base class of the protocol's errors."""


class Malformed(ProtocolError):
    """Bytes that break the protocol.

    ``rule`` is the broken rule, ``at`` the index of the first bad byte (None if unknown), and ``path``
    the field, outermost first ("" if unknown).
    """

    def __init__(self, rule: str, *, at: int | None = None, path: str = "") -> None:
        """Create the error of a broken rule."""
        self.rule: Final = rule
        self.at: Final = at
        self.path: Final = path
        super().__init__(_located(rule, at, path))


class Corrupt(Malformed):
    """A checksum that does not match its bytes."""


class Truncated(ProtocolError):
    """Bytes that end too early; ``missing`` is the least number of bytes that must follow."""

    def __init__(self, missing: int, *, at: int | None = None, path: str = "") -> None:
        """Create the error of bytes that are missing after index ``at``."""
        self.missing: Final = missing
        self.at: Final = at
        self.path: Final = path
        super().__init__(_located(f"{pluralize(missing, 'more byte is', 'more bytes are')} needed", at, path))


class Unencodable(ProtocolError, ValueError):
    """A value that its field cannot carry, or that the requested version has no field for."""


class BrokerError(ProtocolError):
    """A response with an error code.

    ``code`` is the number, a member of `ErrorCode` if known. ``name``, ``meaning`` and ``retriable``
    are those of the code. ``subject`` is what the response is about (a topic and partition, a group),
    and ``broker_message`` the text that the broker sent with the code.
    """

    def __init__(
        self,
        code: int,
        subject: str = "",
        broker_message: str | None = None,
        *,
        codes: type[BrokerErrorCode] = ErrorCode,
    ) -> None:
        """Create the error of a code; ``codes`` has its name and meaning."""
        known = codes.find(code)
        self.code: Final[int] = code if known is None else known
        self.name: Final = f"ERROR_{code}" if known is None else known.name
        self.meaning: Final = "the code is unknown" if known is None else known.message
        self.retriable: Final = known is not None and known.retriable
        self.subject: Final = subject
        self.broker_message: Final = broker_message
        prefix = f"{subject}: " if subject else ""
        suffix = f"; the broker says: {broker_message}" if broker_message else ""
        super().__init__(f"{prefix}{self.name} ({code:d}): {self.meaning}{suffix}")


class ClientError(ProtocolError):
    """A failure between the client and the broker."""


class Disconnected(ClientError):
    """A connection that failed, or was closed before the broker answered."""


class DeadlineExceeded(ClientError, TimeoutError):
    """A timeout; the broker may have processed the request."""


class Unsupported(ClientError):
    """A request that broker and client have no common version of, or a missing feature."""


def _located(rule: str, at: int | None, path: str) -> str:
    where = " ".join(filter(None, [path, "" if at is None else f"at byte {at}"]))
    return f"{where}: {rule}" if where else rule
