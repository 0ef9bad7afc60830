"""The ApiVersions, SaslHandshake and SaslAuthenticate APIs."""

from __future__ import annotations

import re
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import connection as messages
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._errors import ApiError, error_in

_SOFTWARE: Final = re.compile("[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def api_versions(call: Call, request: messages.ApiVersionsRequest) -> messages.ApiVersionsResponse:
    """Return the versions; for an unknown version of the request, error 35 in version 0."""
    advertised = call.release.advertised
    if not call.supported:
        advertised = {call.key: advertised[call.key]} if call.release.lists_api_versions else {}
    rows = [
        messages.ApiVersion(api_key=key, min_version=versions.first, max_version=versions.last)
        for key, versions in advertised.items()
    ]
    # KIP-511: a client reads the versions, if listed, and asks again
    code = ErrorCode.NONE if call.supported else ErrorCode.UNSUPPORTED_VERSION
    response = messages.ApiVersionsResponse(error_code=code, api_keys=rows)
    with error_in(response):
        call.check()
        software = (request.client_software_name, request.client_software_version)
        if call.version >= 3 and not all(map(_SOFTWARE.fullmatch, software)):
            raise ApiError(ErrorCode.INVALID_REQUEST, api_keys=[])
    return response


def sasl_handshake(call: Call, request: messages.SaslHandshakeRequest) -> messages.SaslHandshakeResponse:
    """Choose a mechanism and return the response, which lists the mechanisms, also with an error."""
    response = messages.SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=call.login.mechanisms)
    with error_in(response):
        call.check()
        if not call.login.mechanisms:
            in_0_10 = {"mechanisms": ["GSSAPI"]} if call.release.number < (1, 0) else {}
            raise ApiError(ErrorCode.ILLEGAL_SASL_STATE, **in_0_10)
        call.login.begin(request.mechanism, raw=call.version == 0)
    return response


def sasl_authenticate(
    call: Call, request: messages.SaslAuthenticateRequest
) -> messages.SaslAuthenticateResponse:
    """Return the answer to a message of the mechanism; a failed login closes the connection."""
    response = messages.SaslAuthenticateResponse(
        error_code=ErrorCode.NONE, error_message=None, auth_bytes=b""
    )
    with error_in(response):
        call.check()
        response.auth_bytes = call.login.answer(request.auth_bytes)
    call.close_after_response |= bool(response.error_code and call.login.mechanisms)
    return response
