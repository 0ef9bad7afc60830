"""An identity provider and a broker that accepts its tokens, for tests of SASL OAUTHBEARER."""

from __future__ import annotations

import base64
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from cloudevents_kafka.testing import LocalBroker
from cloudevents_kafka.testing.local import free_ports

CLIENT, SECRET = "shop", "s3cret-Qa7x"
AUDIENCE, ISSUER = "kafka", "https://issuer.test"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
OAUTH_LISTENER = {
    "sasl.jaas.config": f"{_PACKAGE}.OAuthBearerLoginModule required;",
    "sasl.server.callback.handler.class": f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
}
"""The settings of a listener that accepts tokens."""


def text64(content):
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def number64(number):
    return text64(number.to_bytes((number.bit_length() + 7) // 8))


SOON = int(time.time()) + 86_400


def unsigned_jwt(**claims):
    """Return a JWT that no broker accepts."""
    return ".".join(text64(json.dumps(part).encode()) for part in ({"alg": "none"}, claims)) + ".c2ln"


class IdentityProvider:
    """A token endpoint of OpenID Connect with one client; ``lifetime`` is that of a token, in seconds."""

    def __init__(self, tls=None, keys=None):
        """Serve over TLS with a context; ``keys`` is another provider whose key signs the tokens."""
        self._key = keys._key if keys else rsa.generate_private_key(65537, 2048)
        self.lifetime = 300.0
        self.down = False
        self.requests = []  # the forms of requests for a token
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self):
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def token(self, **claims):
        """Return a signed token, whose claims may be replaced."""
        now = time.time()
        claims = {
            "sub": CLIENT,
            "aud": AUDIENCE,
            "iss": ISSUER,
            "iat": int(now),
            "exp": now + self.lifetime,
            **claims,
        }
        parts = [json.dumps(part).encode() for part in ({"alg": "RS256", "kid": "1"}, claims)]
        signed = ".".join(map(text64, parts))
        return f"{signed}.{text64(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _keys(self):
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256"}
        return {"keys": [{**key, "n": number64(numbers.n), "e": number64(numbers.e)}]}

    def _grant(self, login, form):
        self.requests.append(form)
        if self.down:
            return 503, {"error": "temporarily_unavailable"}
        if login != "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode():
            return 401, {"error": "invalid_client", "error_description": "unknown client or wrong secret"}
        return 200, {"access_token": self.token(), "token_type": "Bearer", "expires_in": int(self.lifetime)}

    def _handler(provider):  # noqa: N805  # the handler has a self of its own
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(200, provider._keys())

            def do_POST(self):
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.answer(*provider._grant(self.headers["Authorization"], form))

            def answer(self, status, body):
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        return Handler


def client_credentials(provider, **settings):
    """Return the settings of librdkafka for a login by client credentials."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        "sasl.oauthbearer.client.id": CLIENT,
        "sasl.oauthbearer.client.secret": SECRET,
        **settings,
    }


class OAuthBroker:
    """A broker with a listener for OAUTHBEARER; `secured` is its address, `broker` the broker."""

    def __init__(self, broker, port):
        self.broker = broker
        self.secured = f"127.0.0.1:{port}"


@contextmanager
def oauth_broker(provider, *, session_ms=0):
    """Yield a broker that accepts the provider's tokens, and ends sessions after ``session_ms``."""
    plain, secured, controller = free_ports(3)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{secured}"
    listener = "listener.name.sasl_plaintext.oauthbearer"
    broker = LocalBroker(
        port=plain,
        properties={
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            **{f"{listener}.{name}": value for name, value in OAUTH_LISTENER.items()},
            "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/keys",
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "connections.max.reauth.ms": session_ms,
        },
        jvm_options=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.url}/keys"],
    )
    with broker:
        yield OAuthBroker(broker, secured)
