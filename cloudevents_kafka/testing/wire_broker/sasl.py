"""What a connection may do before and after it has logged in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.testing.wire_broker import scram
from cloudevents_kafka.testing.wire_broker.errors import Refused

_BEFORE_LOGIN: Final = frozenset({17, 18, 36})


class Login:
    """The login of one connection; without users there is none, and everything is allowed."""

    def __init__(self, users: Mapping[str, str]) -> None:
        """Keep the passwords by user."""
        self._users: Final = users
        self._exchange: scram.Exchange | None = None
        self.bare = False
        """Whether the next frame is the mechanism's own message, as after SaslHandshake 0."""

    @property
    def user(self) -> str | None:
        """Who has logged in."""
        return None if self._exchange is None else self._exchange.user

    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms on offer."""
        return list(scram.MECHANISMS) if self._users else []

    def allows(self, key: int) -> bool:
        """Tell whether a request may be made now."""
        return not self._users or self.user is not None or key in _BEFORE_LOGIN

    def begin(self, mechanism: str, *, bare: bool) -> None:
        """Choose a mechanism; `Refused`."""
        if mechanism not in self.mechanisms:
            raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
        self._exchange = scram.exchange(mechanism, self._users)
        self.bare = bare

    def answer(self, message: bytes) -> bytes:
        """Answer a message of the mechanism; `Refused` before one is chosen, `scram.Denied`."""
        if self._exchange is None or self._exchange.user is not None:
            raise Refused(ErrorCode.ILLEGAL_SASL_STATE)
        answer = self._exchange.answer(message)
        self.bare = self.bare and self._exchange.user is None
        return answer
