"""confluent-kafka's clients for the command line, and what their errors mean to a user.

The client is quiet by itself (``log_level`` 0): what it has to say comes by its error
callback and ends in one message, with the broker's address and what to do.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerTrouble, Failure
from cloudevents_kafka.cli.terminal.signals import Interrupts

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Producer

QUIET: Final = {"log_level": "0"}
_TURN: Final = 0.5  # seconds in one call that no signal can end
_PAUSE: Final = 0.02  # seconds between two questions; the client says its troubles meanwhile
_NEWS: Final = 1.0  # seconds of silence after which a terminal is told
# Errors that no waiting mends, by name.
_HOPELESS: Final = ("_AUTHENTICATION", "_SSL", "SASL_AUTHENTICATION_FAILED", "_UNSUPPORTED_FEATURE")


class Reach:
    """The way to one cluster: settings, patience, and what was last heard of trouble.

    ``on_lost`` is told when no broker can be reached, once until one is again.
    """

    def __init__(
        self,
        settings: Settings,
        timeout: float,
        interrupts: Interrupts,
        on_lost: Callable[[], object] = lambda: None,
    ) -> None:
        self.settings = settings
        self._on_lost = on_lost
        self.timeout = timeout
        self.interrupts = interrupts
        self.last: KafkaError | None = None
        self._hopeless: KafkaError | None = None
        self._lost = False

    def hear(self, error: KafkaError) -> None:
        """Take what the client says of trouble, from within its poll."""
        if error.name() in _HOPELESS:
            self._hopeless = error
        if error.name() != "_ALL_BROKERS_DOWN":
            self.last = error
            return
        self.last = self.last or error  # it says less than what came before
        if not self._lost:
            self._lost = True
            self._on_lost()

    def found(self) -> None:
        """Know that there is a broker again."""
        self._lost = False

    def check(self) -> None:
        """Raise for a signal, and for trouble that waiting does not mend."""
        self.interrupts.check()
        if self._hopeless is not None:
            raise self.trouble("refuses", self._hopeless)

    @property
    def address(self) -> str:
        """Where the broker is looked for."""
        return self.settings.redact(self.settings.brokers)

    def trouble(self, what: str, error: object = None) -> BrokerTrouble:
        """Make the error of a broker that ``what``, with its address and what to do."""
        cause = error or self.last
        said = f": {self.settings.redact(str(_text(cause)))}" if cause else ""
        return BrokerTrouble(f"broker {self.address} {what}{said}; {_advice(cause)}")

    def silence(self) -> BrokerTrouble:
        """Make the error of a broker that does not answer."""
        return self.trouble(f"did not answer within {self.timeout:g} s")

    def partitions(self, client: Consumer | Producer, topic: str, *, grace: float = 0) -> list[int]:
        """Ask for a topic's partitions; raises `BadUsage` where there is no such topic.

        ``grace`` is for how many seconds the broker may say so, and yet create it.
        """
        patient_until = time.monotonic() + grace
        error: KafkaError | None = None
        for _ in self.turns(client):
            found = self._ask(client, topic)
            if found is not None and found.error is None and found.partitions:
                return sorted(found.partitions)
            error = None if found is None else found.error
            if error is not None and not _passes(error) and time.monotonic() >= patient_until:
                break
        if error is not None:
            raise self.refusal(error, topic)
        raise self.silence()

    def refusal(self, error: KafkaError, topic: str) -> Failure:
        """Make the error of a topic that the broker does not give."""
        if error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
            return BadUsage(f"broker {self.address} has no topic {topic!r}: check -t")
        if error.name() == "TOPIC_EXCEPTION":
            return BadUsage(f"{topic!r} cannot name a topic: letters, digits, '.', '_' and '-'; check -t")
        return self.trouble(f"refuses topic {topic!r}", error)

    def turns(self, client: Consumer | Producer) -> Iterator[float]:
        """Give turns, in seconds, until patience ends; between them, the client says its troubles."""
        began = time.monotonic()
        told = not sys.stderr.isatty()
        while (left := began + self.timeout - time.monotonic()) > 0:
            yield min(_TURN, left)
            client.poll(_PAUSE)
            self.check()
            if not told and time.monotonic() - began > _NEWS:
                print(f"waiting for broker {self.address} …", file=sys.stderr)
                told = True

    def _ask(self, client: Any, topic: str) -> Any:
        from confluent_kafka import KafkaException

        try:
            return client.list_topics(topic, timeout=_TURN).topics.get(topic)
        except KafkaException as error:
            if error.args[0].name() not in ("_TRANSPORT", "_TIMED_OUT", "_RESOLVE"):
                raise
            return None


def make_consumer(reach: Reach) -> Consumer:
    """Make a consumer; `BadUsage` for settings that it does not take."""
    from confluent_kafka import Consumer

    with _refused(reach.settings):
        return Consumer(_config(reach))


def make_producer(reach: Reach) -> Producer:
    """Make a producer; `BadUsage` for settings that it does not take."""
    from confluent_kafka import Producer

    with _refused(reach.settings):
        return Producer(_config(reach))


def _config(reach: Reach) -> dict[str, Any]:
    return {**reach.settings.effective, "error_cb": reach.hear}


def quiet(settings: Settings) -> Mapping[str, str]:
    """Give the settings that keep the client quiet, unless its debugging is asked for."""
    return {} if "debug" in settings.effective else QUIET


@contextmanager
def _refused(settings: Settings) -> Iterator[None]:
    from confluent_kafka import KafkaException

    try:
        yield
    except (KafkaException, TypeError, ValueError) as error:
        reason = error.args[0] if error.args else error
        said = settings.redact(str(_text(reason)))
        raise BadUsage(f"the client does not take these settings: {said}") from None


@contextmanager
def kafka_errors(reach: Reach) -> Iterator[None]:
    """Turn what the client raises into `BrokerTrouble`."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise reach.trouble("failed", error.args[0]) from None


def _passes(error: KafkaError) -> bool:
    """Tell whether a topic's error is one of its being created, or of a broker's being away."""
    return error.retriable() or error.name() in ("LEADER_NOT_AVAILABLE", "_WAIT_CACHE")


def _text(error: object) -> object:
    """Give the words of a KafkaError, without its C-like frame."""
    words = getattr(error, "str", None)
    return words() if callable(words) else error


def _advice(error: object) -> str:
    name = error.name() if callable(getattr(error, "name", None)) else ""  # type: ignore[attr-defined]  # KafkaError, asked by shape
    if name in ("_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"):
        return "check sasl.username, sasl.password and security.protocol (--show-config)"
    if name == "_SSL":
        return "check security.protocol and ssl.ca.location (--show-config)"
    if name.endswith("AUTHORIZATION_FAILED"):
        return "ask for the right to do this, or use other credentials"
    if name == "_RESOLVE":
        return "check the host name in -b"
    if name in ("", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT"):
        return "check -b, that a broker listens there, and security.protocol (--show-config)"
    return f"its word for it is {name}"
