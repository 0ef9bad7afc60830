"""`TokenEndpoint`: a token endpoint on 127.0.0.1, for clients that can fetch tokens only over HTTP."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from cloudevents_kafka.clients.oauth._command import TokenCommand
from cloudevents_kafka.clients.oauth._token import TokenError

_HOST: Final = "127.0.0.1"
_CLIENT_ID: Final = "cloudevents-kafka"
_MAX_REQUEST: Final = 1 << 16
_NOT_A_JWT: Final = (
    "the token is not a JWT, which Kafka's OAuthBearerLoginCallbackHandler requires; use the login class "
    "of the service instead of a command"
)


class TokenEndpoint:
    """An OAuth token endpoint on 127.0.0.1 that returns the tokens of a `TokenCommand`; a context manager.

    Kafka's Java client cannot run a command, but it can fetch tokens with client credentials. Each endpoint
    has a new random client secret, so other users of this machine cannot fetch a token. Other machines, such
    as the executors of a cluster, cannot reach the endpoint.

    Examples:
        >>> from cloudevents_kafka.clients.oauth import TokenCommand, TokenEndpoint
        >>> from cloudevents_kafka.spark.pipeline import to_java_settings
        >>> with TokenEndpoint(TokenCommand("kafka-token")) as endpoint:
        ...     options = to_java_settings({"security.protocol": "SASL_SSL", **endpoint.settings})
        >>> options["kafka.sasl.mechanism"]
        'OAUTHBEARER'
    """

    def __init__(self, command: TokenCommand) -> None:
        self._secret: Final = secrets.token_urlsafe(32)
        login = base64.b64encode(f"{_CLIENT_ID}:{self._secret}".encode()).decode()
        handler = partial(_Handler, command, f"Basic {login}")
        self._server: Final = ThreadingHTTPServer((_HOST, 0), handler)  # the command may take seconds
        self._thread: Final = threading.Thread(
            target=self._server.serve_forever, name="token endpoint", daemon=True
        )

    @property
    def url(self) -> str:
        """The URL of the endpoint."""
        return f"http://{_HOST}:{self._server.server_address[1]}/token"

    @property
    def settings(self) -> dict[str, str]:
        """The librdkafka settings for this token endpoint; ``to_java_settings`` converts them for Spark."""
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.oauthbearer.client.id": _CLIENT_ID,
            "sasl.oauthbearer.client.secret": self._secret,
        }

    def __enter__(self) -> Self:
        """Start the HTTP server."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the HTTP server."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = 30.0  # seconds for a request: another program may connect and send nothing

    def __init__(self, command: TokenCommand, login: str, *request: Any) -> None:
        self._command, self._login = command, login
        super().__init__(*request)  # this call answers the request

    def do_POST(self) -> None:
        """Respond to an HTTP request for a token (RFC 6749 4.4)."""
        length = self.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) <= _MAX_REQUEST:
            self.rfile.read(int(length))
        self._send(*self._answer())

    def _answer(self) -> tuple[int, dict[str, Any]]:
        login = self.headers.get("Authorization", "")
        if not hmac.compare_digest(login.encode("utf-8", "replace"), self._login.encode()):
            return 401, {"error": "invalid_client"}
        try:
            token = self._command.token()
        except TokenError as error:
            return 400, {"error": "invalid_grant", "error_description": str(error)}
        if not token.is_jwt:
            return 400, {"error": "invalid_request", "error_description": _NOT_A_JWT}
        seconds = max(0, int(token.expires - time.time()))
        return 200, {"access_token": token.value, "token_type": "Bearer", "expires_in": seconds}

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Do not log requests, because a request contains a secret."""
