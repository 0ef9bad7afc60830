"""A session with a cluster: confluent-kafka's clients, their errors, and a limit to waiting.

The clients log nothing (``log_level`` 0). Their errors arrive by a callback and end in one message
that has the broker's address, the cause and what to check.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudevents_kafka.cli.kafka._settings import Settings
from cloudevents_kafka.cli.terminal import BadUsage, BrokerFailure, CommandError, Interrupts

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

_CALL_SECONDS: Final = 0.5  # in one call, which signals do not end
_POLL_SECONDS: Final = 0.02  # between two calls, for the client's error callback
_NOTICE_SECONDS: Final = 1.0  # of waiting, after which a terminal shows it
_Client = TypeVar("_Client")
# Names of errors that waiting does not resolve.
_PERMANENT: Final = ("_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "_UNSUPPORTED_FEATURE")


class BrokerSession:
    """The settings, the timeout, the signals and the last error of one cluster.

    ``on_lost`` is called when all brokers become unreachable, and again only after `mark_connected`.
    """

    def __init__(
        self,
        settings: Settings,
        timeout: float,
        interrupts: Interrupts,
        on_lost: Callable[[], object] = lambda: None,
    ) -> None:
        self.settings = settings
        self.timeout = timeout
        self._interrupts = interrupts
        self._on_lost = on_lost
        self._last_error: KafkaError | None = None
        self._permanent_error: KafkaError | None = None
        self._lost = False

    def on_error(self, error: KafkaError) -> None:
        """Store an error of the client; its ``error_cb``."""
        if error.name() in _PERMANENT:
            self._permanent_error = error
        if error.name() != "_ALL_BROKERS_DOWN":
            self._last_error = error
            return
        self._last_error = self._last_error or error  # the error before it has the reason
        if not self._lost:
            self._lost = True
            self._on_lost()

    def mark_connected(self) -> None:
        """Record that a broker can be reached again."""
        self._lost = False

    def check(self) -> None:
        """Raise `Interrupted` after a signal, and `BrokerFailure` after an error that is permanent."""
        self._interrupts.check()
        if self._permanent_error is not None:
            raise self.failure("refuses", self._permanent_error)

    @property
    def address(self) -> str:
        """The addresses of the brokers, without credentials."""
        return self.settings.redact(self.settings.bootstrap_servers)

    def failure(self, what: str, error: object = None) -> BrokerFailure:
        """Return the error ``broker <address> <what>: <cause>; <advice>``."""
        cause = error or self._last_error
        reason = f": {self.settings.redact(str(_error_text(cause)))}" if cause else ""
        return BrokerFailure(f"broker {self.address} {what}{reason}; {_advice(cause)}")

    def no_answer(self) -> BrokerFailure:
        """Return the error of a broker that did not answer within the timeout."""
        return self.failure(f"did not answer within {self.timeout:g} s")

    def partitions(self, client: Consumer | Producer, topic: str, *, grace: float = 0) -> list[int]:
        """Return the partitions of a topic, sorted.

        Raises `BadUsage` if the topic does not exist; for ``grace`` seconds the broker may still
        create it. Raises `BrokerFailure` if the broker does not answer.
        """
        grace_ends = time.monotonic() + grace
        error: KafkaError | None = None
        for _ in self.poll_until_timeout(client):
            metadata = self._topic_metadata(client, topic)
            if metadata is not None and metadata.error is None and metadata.partitions:
                return sorted(metadata.partitions)
            error = None if metadata is None else metadata.error
            if error is not None and not _is_transient(error) and time.monotonic() >= grace_ends:
                break
        if error is not None:
            raise self.topic_error(error, topic)
        raise self.no_answer()

    def topic_error(self, error: KafkaError, topic: str) -> CommandError:
        """Return the error of a topic that the broker refuses."""
        if error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            return BadUsage(f"broker {self.address} has no topic {topic!r}; check -t")
        if error.name() == "TOPIC_EXCEPTION":
            return BadUsage(f"a topic name must have letters, digits, '.', '_' and '-' only, got {topic!r}")
        return self.failure(f"refuses topic {topic!r}", error)

    def poll_until_timeout(self, client: Consumer | Producer) -> Iterator[None]:
        """Yield until the timeout; poll the client for errors and check for signals in between."""
        started = time.monotonic()
        announced = not sys.stderr.isatty()
        while time.monotonic() - started < self.timeout:
            yield
            client.poll(_POLL_SECONDS)
            self.check()
            if not announced and time.monotonic() - started > _NOTICE_SECONDS:
                print(f"waiting for broker {self.address} …", file=sys.stderr)
                announced = True

    def _topic_metadata(self, client: Any, topic: str) -> Any:
        """Return the metadata of a topic; None if no broker answers."""
        from confluent_kafka import KafkaException

        try:
            return client.list_topics(topic, timeout=_CALL_SECONDS).topics.get(topic)
        except KafkaException as error:
            if error.args[0].name() not in ("_TRANSPORT", "_TIMED_OUT", "_RESOLVE"):
                raise
            return None


def create_consumer(session: BrokerSession) -> Consumer:
    """Return a consumer; raises `BadUsage` for settings that the client refuses."""
    from confluent_kafka import Consumer

    return _create(Consumer, session)


def create_producer(session: BrokerSession) -> Producer:
    """Return a producer; raises `BadUsage` for settings that the client refuses."""
    from confluent_kafka import Producer

    return _create(Producer, session)


def _create(client: Callable[[dict[str, Any]], _Client], session: BrokerSession) -> _Client:
    from confluent_kafka import KafkaException

    try:
        return client({**session.settings.effective, "error_cb": session.on_error})
    except (KafkaException, TypeError, ValueError) as error:
        reason = error.args[0] if error.args else error
        text = session.settings.redact(str(_error_text(reason)))
        raise BadUsage(f"the client does not accept these settings: {text}") from None


@contextmanager
def kafka_errors(session: BrokerSession) -> Iterator[None]:
    """Return a context manager that converts exceptions of the client to `BrokerFailure`."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise session.failure("failed", error.args[0]) from None


def _is_transient(error: KafkaError) -> bool:
    """Return whether the error of a topic may end by itself: it is being created, or a broker is away."""
    return error.retriable() or error.name() in ("LEADER_NOT_AVAILABLE", "_WAIT_CACHE")


def _error_text(error: object) -> object:
    """Return the message of a KafkaError without its ``KafkaError{code=…}``."""
    message = getattr(error, "str", None)
    return message() if callable(message) else error


def _advice(error: object) -> str:
    name = error.name() if callable(getattr(error, "name", None)) else ""  # type: ignore[attr-defined]  # a KafkaError, by its methods
    if name in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"):
        return "check sasl.username, sasl.password and security.protocol (--show-config)"
    if name == "_SSL":
        return "check security.protocol and ssl.ca.location (--show-config)"
    if name.endswith("AUTHORIZATION_FAILED"):
        return "ask for this permission, or use other credentials"
    if name == "_RESOLVE":
        return "check the host name in -b"
    if name in ("", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT"):
        return "check -b, that a broker listens there, and security.protocol (--show-config)"
    return f"the error is {name}"
