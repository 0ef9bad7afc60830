"""`TokenCommand`: runs a command that prints a token, and uses each token for most of its lifetime."""

from __future__ import annotations

import logging
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cloudevents_kafka.clients.oauth._token import Token, TokenError, read_token
from cloudevents_kafka.primitives.redaction import mask_text
from cloudevents_kafka.primitives.visible import escape

_log: Final = logging.getLogger("cloudevents_kafka.clients.oauth")
# A token is used for this part of its life. librdkafka and Java ask for the next token after 80 %.
_KEPT: Final = 0.75
_SHOWN: Final = 300  # characters of the command's stderr
_LONGEST_LIFE: Final = 10 * 365 * 86_400


class TokenCommand:
    """An ``oauth_cb`` of confluent-kafka's clients that runs a command for each new token.

    ``command`` is a list of words, or one text that is split like a line of a shell; the command runs without
    a shell. The command prints the token to stdout (see `Token`), and must end within ``timeout`` seconds.
    ``extensions`` are SASL extensions for the broker, such as ``logicalCluster`` for Confluent Cloud. If the
    token does not contain a user name, ``principal`` is used as the user name. A token is used until three
    quarters of its lifetime have passed. Several clients and threads may share a `TokenCommand`. Raises
    `ValueError` if ``command`` is empty, or contains a quote that is not closed.

    Examples:
        >>> from cloudevents_kafka.clients.oauth import TokenCommand
        >>> program = ['echo', '{"access_token": "abc", "expires_in": 600}']
        >>> tokens = TokenCommand(program)
        >>> settings = {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": tokens}  # for a Producer or a Consumer
        >>> tokens.token().value
        'abc'
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        timeout: float = 30.0,
        principal: str = "",
        extensions: Mapping[str, str] | None = None,
    ) -> None:
        try:
            words = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError as error:
            raise ValueError(f"the token command must have closed quotes: {error}") from None
        if not words:
            raise ValueError("the token command must be a program and its arguments, got nothing")
        self._words: Final = words
        self._timeout: Final = timeout
        self._principal: Final = principal
        self._extensions: Final = dict(extensions or {})
        self._lock: Final = threading.Lock()
        self._kept: tuple[Token, float] | None = None
        self.error: TokenError | None = None
        """The error of the command's last run, or None; the client's own error omits the reason."""

    def token(self) -> Token:
        """Return the token; run the command if no token exists, or if most of its lifetime has passed.

        Raises `TokenError` if the command cannot be run, fails, or prints no token.
        """
        with self._lock:
            if self._kept is None or time.time() >= self._kept[1]:
                started = time.time()
                token = self._run()
                self._kept = token, started + _KEPT * (token.expires - started)
            return self._kept[0]

    def __call__(self, config: str = "") -> tuple[str, float, str, dict[str, str]]:  # noqa: ARG002
        """Return what confluent-kafka expects from an ``oauth_cb``: token, expiry, principal and extensions.

        The client does not print the message of a `TokenError`, so the message is also logged as a warning.
        """
        try:
            token = self.token()
        except TokenError as error:
            _log.warning("%s", error)
            raise
        expires = min(token.expires, time.time() + _LONGEST_LIFE)
        return token.value, expires, token.principal or self._principal, self._extensions

    def __repr__(self) -> str:
        """Return the name of the token program without its arguments, because an argument may be secret."""
        return f"TokenCommand({self._name!r}, …)"

    @property
    def _name(self) -> str:
        return Path(self._words[0]).name

    def _run(self) -> Token:
        try:
            token = read_token(self._output())
        except TokenError as error:
            self.error = TokenError(f"the token command {self._name!r} failed: {error}")
            raise self.error from None
        self.error = None
        return token

    def _output(self) -> bytes:
        try:
            done = subprocess.run(
                self._words, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._timeout, check=False
            )
        except FileNotFoundError:
            raise TokenError("there is no such program; install it, or write its path") from None
        except OSError as error:
            raise TokenError(f"it cannot be run: {error.strerror or error}") from None
        except subprocess.TimeoutExpired:
            raise TokenError(f"it did not end within {self._timeout:g} s; run it by hand") from None
        except ValueError:
            raise TokenError("its words must not contain NUL") from None
        if done.returncode:
            raise TokenError(f"exit code {done.returncode}{self._reason(done.stderr)}; run it by hand")
        return done.stdout

    def _reason(self, stderr: bytes) -> str:
        """Return the last line of the command's stderr, without its arguments, which may be secret."""
        lines = stderr.decode("utf-8", "replace").strip().splitlines()
        pieces = {piece for word in self._words[1:] for piece in (word, word.partition("=")[2])}
        text = mask_text(lines[-1], (piece for piece in pieces if len(piece) > 3)) if lines else ""
        text = escape(text)[:_SHOWN]
        return f": {text}" if text else ""
