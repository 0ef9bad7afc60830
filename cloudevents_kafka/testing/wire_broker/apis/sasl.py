"""SaslHandshake and SaslAuthenticate."""

from __future__ import annotations

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from cloudevents_kafka.testing.wire_broker.call import Call
from cloudevents_kafka.testing.wire_broker.errors import Refused, outcome
from cloudevents_kafka.testing.wire_broker.scram import Denied


def handshake(call: Call, asked: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Choose a mechanism; any answer lists those on offer."""

    def begin() -> None:
        call.check()
        call.login.begin(asked.mechanism, bare=call.version == 0)

    code = outcome(begin)
    return SaslHandshakeResponse(error_code=code, mechanisms=call.login.mechanisms)


def authenticate(call: Call, asked: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Answer a message of the mechanism; a failed login ends the connection."""
    try:
        call.check()
        answer = call.login.answer(asked.auth_bytes)
    except Refused as refused:
        return _failed(call, refused.code, "the login cannot go on here")
    except Denied as denied:
        return _failed(call, ErrorCode.SASL_AUTHENTICATION_FAILED, str(denied))
    return SaslAuthenticateResponse(error_code=ErrorCode.NONE, error_message=None, auth_bytes=answer)


def _failed(call: Call, code: int, reason: str) -> SaslAuthenticateResponse:
    call.hang_up = True
    return SaslAuthenticateResponse(error_code=code, error_message=reason, auth_bytes=b"")
