"""A session with a cluster: the clients of confluent-kafka, their errors, and a time limit for answers.

The clients do not print their logs, and pass their errors to a callback. The session combines errors into one
message, which contains the broker's address, the cause, and advice about what to check. Only the client's log
says why a connection was closed, so the session reads this log.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudevents_kafka.cli.kafka.logins import (
    client_settings,
    explain_login,
    explain_silence,
    has_no_token,
    token_command,
)
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure, CommandError
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.text import near

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer
    from confluent_kafka.admin import AdminClient

_CALL_SECONDS: Final = 0.5  # the time of a client's first call, which a signal does not end
_POLL_SECONDS: Final = 0.02  # between two polls for the client's error callback
_NOTICE_SECONDS: Final = 1.0  # after this time, a terminal shows that the command waits
_SYSLOG_INFO: Final = 6
_CREATION_SECONDS: Final = 3.0  # the time to create a missing topic, if the user asks for this
_REFUSED_SECONDS: Final = 0.5  # several addresses of a name are tried one after the other
_REFUSED: Final = {"_TRANSPORT": "Connection refused", "_RESOLVE": ""}
"""The names of errors that do not go away by waiting, each with a part of the error's text."""
_Client = TypeVar("_Client", "AdminClient", "Consumer", "Producer")
_Answer = TypeVar("_Answer")

# Errors by `KafkaError.name()`, as librdkafka documents them; error codes would need an import here.
_LOGIN: Final = ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED")
_PERMANENT: Final = (*_LOGIN, "_SSL", "_UNSUPPORTED_FEATURE")
_UNREACHABLE: Final = ("_TRANSPORT", "_ALL_BROKERS_DOWN")
_UNANSWERED: Final = (*_UNREACHABLE, "_TIMED_OUT", "_WAIT_COORD")
_CHECK_ADDRESS: Final = "check -b, that a broker listens there, and security.protocol (--show-config)"
_CLOSED: Final = (
    "a port for TLS or SASL closes other connections: check security.protocol (--show-config), and -b"
)
_THREAD: Final = re.compile(r"\A\[thrd:[^\]]*\]: ")
_ADVICE: Final = {
    **dict.fromkeys((*_UNREACHABLE, "_TIMED_OUT"), _CHECK_ADDRESS),
    "_SSL": "check security.protocol and ssl.ca.location (--show-config)",
    "_RESOLVE": "check the host name in -b",
}
ASK_FOR_PERMISSION: Final = "ask for this permission, or use other credentials"
CREATE_TOPICS: Final = "allow.auto.create.topics"
"""The setting with which a client lets the brokers create a missing topic."""


class ConnectionsRefused(BrokerFailure):
    """No process listens at the addresses of the brokers that the settings name."""


class TopicNotAllowed(BrokerFailure):
    """The user is not allowed to describe a topic."""


class _Log:
    """The client's log; ``reason`` says why the last connection failed, or is an empty text."""

    def __init__(self) -> None:
        self.reason = ""

    def log(self, level: int, format: str, kind: str, client: str, text: str) -> None:  # noqa: ARG002
        """Read an entry that the client writes to its log."""
        if kind == "FAIL":
            self.reason = _THREAD.sub("", text)


class BrokerSession:
    """The settings, the timeout, the signals and the last error of one cluster.

    The session's clients create no topic, unless the setting ``allow.auto.create.topics`` is set.

    ``address`` contains the addresses of the brokers, without credentials. ``on_lost`` is called when all
    brokers become unreachable. It is called again only after `mark_connected`. Raises `BadUsage` if the
    address is missing.
    """

    def __init__(
        self,
        settings: Settings,
        timeout: float,
        interrupts: Interrupts,
        on_lost: Callable[[], object] = lambda: None,
    ) -> None:
        self.address = settings.redact(settings.bootstrap_servers)
        self.timeout = timeout
        self._settings = settings
        self._interrupts = interrupts
        self._on_lost = on_lost
        self._last_error: KafkaError | None = None
        self._permanent_error: KafkaError | None = None
        self._log = _Log()
        self._lost = False
        self._connected = False
        self._tokens = token_command(settings)

    def create(self, client: Callable[[dict[str, Any]], _Client]) -> _Client:
        """Return a consumer or a producer.

        Raises `BadUsage` if the client refuses the settings, and `BrokerFailure` if the token command does
        not print a token.
        """
        from confluent_kafka import KafkaException

        self._check_token()
        try:
            settings = client_settings(self._settings, self._tokens)
            if settings.get("log_level", "0") == "0" and "debug" not in settings:
                settings |= {"log_level": str(_SYSLOG_INFO), "logger": self._log}
            # librdkafka's producers and admin clients would by default create a topic that they ask about.
            return client({CREATE_TOPICS: "false", **settings, "error_cb": self.on_error})
        except KafkaException as error:
            reason = error.args[0].str()
        except (TypeError, ValueError) as error:
            reason = str(error)
        raise BadUsage(f"the client does not accept these settings: {self._settings.redact(reason)}")

    def _check_token(self) -> None:
        """Run the token command once, so that an error of the command is raised.

        Without this check, the client would wait for a token and would not report the error.
        """
        if self._tokens is None:
            return
        from cloudevents_kafka.clients.oauth import TokenError

        try:
            self._tokens.token()
        except TokenError as error:
            raise BrokerFailure(f"there is no login for broker {self.address}: {error}") from None

    def on_error(self, error: KafkaError) -> None:
        """Store an error of the client; the client calls this method as its ``error_cb``."""
        # If the client receives no new token, it continues with the last token, and tries again.
        if error.name() in _PERMANENT and not (self._connected and has_no_token(error.str())):
            self._permanent_error = error
        if error.name() != "_ALL_BROKERS_DOWN":
            self._last_error = error
            return
        self._last_error = self._last_error or error  # the previous error contains the reason
        if not self._lost:
            self._lost = True
            self._on_lost()

    @property
    def _is_refused(self) -> bool:
        """Whether nothing listens at the brokers' addresses, or the host names of all brokers are unknown."""
        error = self._last_error
        if error is None or not self._lost or self._connected:
            return False
        return error.name() in _REFUSED and _REFUSED[error.name()] in error.str()

    def _refusal(self) -> CommandError:
        if self._last_error is not None and self._last_error.name() == "_RESOLVE":
            return self.failure("cannot be found")
        return ConnectionsRefused(self.failure("refuses connections").message)

    @property
    def connected(self) -> bool:
        """Whether a broker was reached since the session began."""
        return self._connected

    def mark_connected(self) -> None:
        """Remember that a broker was reached, or was reached again."""
        self._connected = True
        self._lost = False

    def check(self) -> None:
        """Raise `Interrupted` after a signal, and `BrokerFailure` after an error that does not go away."""
        self._interrupts.check()
        if self._permanent_error is not None:
            raise self.failure("refuses", self._permanent_error)

    @contextmanager
    def client_errors(self) -> Iterator[None]:
        """Return a context manager that converts exceptions of the client to `BrokerFailure`."""
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as error:
            raise self.failure("failed", error.args[0]) from None

    def failure(self, what: str, error: KafkaError | None = None) -> BrokerFailure:
        """Return the error ``broker <address> <what>: <cause>; <advice>``."""
        cause = error or self._last_error
        if cause is None:
            advice = explain_silence(self._settings) or _CHECK_ADDRESS
            return BrokerFailure(f"broker {self.address} {what}; {advice}")
        reason = cause.str()
        advice = _ADVICE.get(cause.name(), f"the error is {cause.name()}")
        if cause.name() == "_ALL_BROKERS_DOWN" and self._log.reason:
            reason, advice = self._log.reason, _CLOSED
        if cause.name() in _LOGIN:
            reason, advice = explain_login(self._settings, self._tokens, reason)
        if cause.name().endswith("AUTHORIZATION_FAILED"):
            advice = ASK_FOR_PERMISSION
        return BrokerFailure(f"broker {self.address} {what}: {self._settings.redact(reason)}; {advice}")

    def no_answer(self) -> BrokerFailure:
        """Return the error for a broker that did not answer within the timeout."""
        return self.failure(f"did not answer within {self.timeout:g} s")

    def partitions(self, client: AdminClient | Consumer | Producer, topic: str) -> list[int]:
        """Return the partitions of a topic, sorted by number.

        Raises `BadUsage` if the topic does not exist, `TopicNotAllowed` if the user is not allowed to
        describe the topic, and `BrokerFailure` if the broker does not answer.
        """
        created = self._settings.effective.get(CREATE_TOPICS) == "true"
        grace_ends = time.monotonic() + _CREATION_SECONDS * created
        error: KafkaError | None = None
        with self.client_errors():
            for _ in self.poll_until_timeout(client):
                cluster = self.metadata(client, topic)
                metadata = cluster and cluster.topics.get(topic)
                if metadata is not None and metadata.error is None and metadata.partitions:
                    self.mark_connected()
                    return sorted(metadata.partitions)
                error = None if metadata is None else metadata.error
                if error is not None and not is_transient(error) and time.monotonic() >= grace_ends:
                    break
            if error is not None and error.name() == "TOPIC_AUTHORIZATION_FAILED":
                raise TopicNotAllowed(self.topic_error(error, topic).message)
            if error is not None:
                raise self.topic_error(error, topic, self._known_topics(client))
        raise self.no_answer()

    def topics(self, client: AdminClient | Consumer | Producer) -> list[str]:
        """Return the sorted names of the topics that the user may see.

        Raises `BrokerFailure` if no broker answers.
        """
        with self.client_errors():
            for _ in self.poll_until_timeout(client):
                if found := self.metadata(client):
                    return sorted(found.topics)
        raise self.no_answer()

    def _known_topics(self, client: AdminClient | Consumer | Producer) -> Iterable[str]:
        """Return the topics that the user may see, or () if the broker does not list topics."""
        with suppress(CommandError), self.client_errors():
            cluster = self.metadata(client)
            return tuple(cluster.topics) if cluster else ()
        return ()

    def topic_error(self, error: KafkaError, topic: str, names: Iterable[str] = ()) -> CommandError:
        """Return the error for a topic that the broker refuses; ``names`` are the topics on the broker."""
        if error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            return BadUsage(
                f"broker {self.address} has no topic {topic!r}{near(topic, names) or '; check -t'}"
            )
        if error.name() == "TOPIC_EXCEPTION":
            return BadUsage(f"a topic name must have letters, digits, '.', '_' and '-' only, got {topic!r}")
        # Words after the name are needed: 'auth': would look like the name of a secret before its value.
        refusal = self.failure(f"refuses topic {topic!r} to this client", error)
        refusal.is_of_topic = True
        return refusal

    def poll_until_timeout(self, client: AdminClient | Consumer | Producer) -> Iterator[None]:
        """Yield repeatedly until the timeout.

        Between two yields, poll the client for errors, and check for signals.
        """
        started = time.monotonic()
        announced = not sys.stderr.isatty()
        while time.monotonic() - started < self.timeout:
            yield
            client.poll(_POLL_SECONDS)
            self.check()
            if self._is_refused and time.monotonic() - started > _REFUSED_SECONDS:
                raise self._refusal()
            if not announced and time.monotonic() - started > _NOTICE_SECONDS:
                print(f"waiting for broker {self.address} …", file=sys.stderr)
                announced = True

    def ask(self, client: Consumer, call: Callable[..., _Answer]) -> _Answer:
        """Call ``call``, a function of the client with the parameter ``timeout``, and return its result.

        The call is repeated until the broker answers. The time limit of each call is twice the limit of the
        previous call, since a broker may be slow. Between two calls, the method checks for signals. Raises
        `BrokerFailure` if the broker does not answer within the session's timeout, or if the call fails.
        """
        from confluent_kafka import KafkaException

        ends, seconds = time.monotonic() + self.timeout, _CALL_SECONDS
        self.check()
        with self.client_errors():
            for _ in self.poll_until_timeout(client):
                try:
                    return call(timeout=max(_POLL_SECONDS, min(seconds, ends - time.monotonic())))
                except KafkaException as error:
                    if error.args[0].name() not in _UNANSWERED:
                        raise
                seconds *= 2
        raise self.no_answer()

    def metadata(self, client: Any, topic: str | None = None) -> Any:
        """Return the metadata of one topic, or of all topics of a cluster, or None if no broker answers."""
        from confluent_kafka import KafkaException

        try:
            return client.list_topics(topic, timeout=_CALL_SECONDS)
        except KafkaException as error:
            if error.args[0].name() not in ("_TRANSPORT", "_TIMED_OUT", "_RESOLVE"):
                raise
            return None


def is_transient(error: KafkaError) -> bool:
    """Return whether an error may be temporary: a topic is not created yet, or a broker is unreachable."""
    names = ("LEADER_NOT_AVAILABLE", "_WAIT_CACHE", *_UNREACHABLE)
    return not error.fatal() and (error.retriable() or error.name() in names)
