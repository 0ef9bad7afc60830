"""The ApiVersions, SaslHandshake and SaslAuthenticate APIs."""

from __future__ import annotations

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import connection as messages
from cloudevents_kafka.testing.wire_broker._call import Call
from cloudevents_kafka.testing.wire_broker._errors import ApiError, error_code_of
from cloudevents_kafka.testing.wire_broker._sasl import LoginFailed


def api_versions(call: Call, _request: messages.ApiVersionsRequest) -> messages.ApiVersionsResponse:
    """Return the versions; for an unknown version of the request, error 35 in version 0."""
    code = error_code_of(call.check)
    advertised = call.release.advertised
    if not call.supported:
        code = ErrorCode.UNSUPPORTED_VERSION
        advertised = {call.key: advertised[call.key]} if call.release.lists_api_versions else {}
    return messages.ApiVersionsResponse(
        error_code=code,
        api_keys=[
            messages.ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
            for key, versions in advertised.items()
        ],
    )


def handshake(call: Call, request: messages.SaslHandshakeRequest) -> messages.SaslHandshakeResponse:
    """Choose a mechanism and return the response, which lists the mechanisms, also with an error."""

    def begin() -> None:
        call.check()
        call.login.begin(request.mechanism, raw=call.version == 0)

    code = error_code_of(begin)
    return messages.SaslHandshakeResponse(error_code=code, mechanisms=call.login.mechanisms)


def authenticate(call: Call, request: messages.SaslAuthenticateRequest) -> messages.SaslAuthenticateResponse:
    """Return the answer to a message of the mechanism; a failed login closes the connection."""
    try:
        call.check()
        answer = call.login.answer(request.auth_bytes)
    except ApiError as error:
        return _failed(call, error.code, "no mechanism is chosen, or the login is done")
    except LoginFailed as failed:
        return _failed(call, ErrorCode.SASL_AUTHENTICATION_FAILED, str(failed))
    return messages.SaslAuthenticateResponse(error_code=ErrorCode.NONE, error_message=None, auth_bytes=answer)


def _failed(call: Call, code: int, reason: str) -> messages.SaslAuthenticateResponse:
    call.close_after_response = True
    return messages.SaslAuthenticateResponse(error_code=code, error_message=reason, auth_bytes=b"")
