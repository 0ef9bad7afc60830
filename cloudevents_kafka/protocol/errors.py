"""The errors of this room, all under one root.

::

    ProtocolError
    ├── Malformed                bytes that break the protocol; more of them would not help
    │   └── Corrupt              a checksum does not fit its bytes
    ├── Truncated                the bytes end too early; with more of them, reading may go on
    ├── Unencodable (ValueError) a value that its field, or the version asked for, cannot carry
    ├── BrokerError              a broker answered with an error code
    └── ClientError
        ├── Disconnected         a connection could not be made, or broke
        ├── DeadlineExceeded (TimeoutError)
        └── Unsupported          broker and client have no version in common

A cut message at the end of a message set is none of these: brokers cut there on
purpose, and readers of sets say how many bytes were left over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.error_codes import CODES, ErrorCode


class ProtocolError(Exception):
    """The root of this room's errors."""


class Malformed(ProtocolError):
    """Bytes that no reading makes sense of.

    ``path`` names the field, outermost first, ``at`` is its byte, counted from where
    reading began; either may be unknown.
    """

    def __init__(self, rule: str, *, at: int | None = None, path: str = "") -> None:
        """Say which rule is broken, and where."""
        self.rule: Final = rule
        self.at: Final = at
        self.path: Final = path
        super().__init__(_located(rule, at, path))


class Corrupt(Malformed):
    """A checksum that does not fit the bytes it is for."""


class Truncated(ProtocolError):
    """Bytes that end before what they promise; ``missing`` is how many more are needed at least."""

    def __init__(self, missing: int, *, at: int | None = None, path: str = "") -> None:
        """Say how many bytes are missing, and where."""
        self.missing: Final = missing
        self.at: Final = at
        self.path: Final = path
        super().__init__(_located(f"{missing} more bytes are needed", at, path))


class Unencodable(ProtocolError, ValueError):
    """A value that does not fit its field, or that the version asked for has no field for."""


class BrokerError(ProtocolError):
    """A broker's answer with an error code.

    ``code`` is the number, ``error`` its row in `codes.CODES`; ``about`` says what the
    answer is about (a topic and partition, a group) and ``said`` what the broker added.
    ``codes`` is another table: before 0.8 the numbers meant other things.
    """

    def __init__(
        self,
        code: int,
        about: str = "",
        said: str | None = None,
        *,
        codes: Mapping[int, ErrorCode] = CODES,
    ) -> None:
        """Look the code up."""
        self.code: Final = code
        self.error: Final[ErrorCode] = codes.get(code) or ErrorCode(
            code, f"ERROR_{code}", retriable=False, meaning="this client has no name for this code"
        )
        self.about: Final = about
        self.said: Final = said
        where = f"{about}: " if about else ""
        more = f"; the broker says: {said}" if said else ""
        super().__init__(f"{where}{self.error.name} ({code}): {self.error.meaning}{more}")

    @property
    def retriable(self) -> bool:
        """Whether the same request may well succeed later."""
        return self.error.retriable


class ClientError(ProtocolError):
    """Something between client and broker failed."""


class Disconnected(ClientError):
    """A connection could not be made, or was closed with answers outstanding."""


class DeadlineExceeded(ClientError, TimeoutError):
    """The time that the caller gave was over; what was asked for may still have happened."""


class Unsupported(ClientError):
    """Broker and client have no version of a request in common, or the broker lacks a feature."""


def _located(rule: str, at: int | None, path: str) -> str:
    where = " ".join(filter(None, [path, "" if at is None else f"at byte {at}"]))
    return f"{where}: {rule}" if where else rule
