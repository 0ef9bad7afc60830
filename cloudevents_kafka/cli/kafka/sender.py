"""Send records through a Kafka producer, and count the answers of the broker."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.cli.kafka.reader import check_partitions
from cloudevents_kafka.cli.kafka.session import ASK_FOR_PERMISSION, BrokerSession, TopicNotAllowed
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.kafka.topic_names import check_topic_name
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.text import print_message
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

_SIZE: Final = "a record must fit message.max.bytes of the client (-X), and max.message.bytes of the topic"
# What to do about a record that is not accepted, by `KafkaError.name()`.
_ADVICE: Final = {
    **dict.fromkeys(("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"), _SIZE),
    "INVALID_RECORD": "a compacted topic does not accept records without a key: pass --key or --key-from",
    "INVALID_TIMESTAMP": "the timestamp is too old or too new for the topic: leave out --keep-timestamps",
    "TOPIC_AUTHORIZATION_FAILED": ASK_FOR_PERMISSION,
}
# The values with which a client accepts `enable.idempotence`; other settings have no such limit.
_IDEMPOTENT: Final = {
    **dict.fromkeys(("acks", "request.required.acks"), "all|-1"),
    **dict.fromkeys(("max.in.flight", "max.in.flight.requests.per.connection"), "[1-5]"),
    **dict.fromkeys(("retries", "message.send.max.retries"), "[1-9][0-9]*"),
    "queuing.strategy": "fifo",
}
_WAIT_SECONDS: Final = 0.2  # the maximum time of a client's call, which a signal does not end


def producer_settings(settings: Settings, command: str, defaults: Mapping[str, str]) -> Settings:
    """Return the settings of a command's producer, with defaults that the settings of the user override.

    By default, the client preserves the order of records, and a retry does not write a record twice. The
    user's settings can turn off the order of records, and the protection against repeated records.
    """
    chosen = settings.effective
    limited = chosen.keys() & _IDEMPOTENT
    if all(re.fullmatch(_IDEMPOTENT[name], chosen[name], re.IGNORECASE) for name in limited):
        defaults = {**defaults, "enable.idempotence": "true"}
    return settings.with_defaults(f"defaults of {command}", defaults)


class TopicSender:
    """Sends records through a producer, and counts how many were ``sent``, ``delivered`` and ``failed``.

    ``report`` is called for each undelivered record, with the origin of the record (file and line) and the
    reason. ``on_delivered`` is called with the position of each delivered record, such as ``orders[0]@17``.
    If ``report`` or ``on_delivered`` raises an `OSError`, neither function is called again. The methods
    `send` and `poll` then raise this `OSError`, and `flush` raises it after waiting for the answers.
    """

    def __init__(
        self,
        producer: Producer,
        session: BrokerSession,
        report: Callable[[str, str], None],
        on_delivered: Callable[[str], None] | None = None,
    ) -> None:
        self._producer = producer
        self._session = session
        self._report = report
        self._on_delivered = on_delivered
        self._last_answer = time.monotonic()
        self._topics: dict[str, list[int] | BadUsage | BrokerFailure | None] = {}
        self._errors: set[str] = set()
        self._print_error: OSError | None = None
        self.delivered = 0
        self.failed = 0
        self.sent = 0

    @property
    def unanswered(self) -> int:
        """The number of sent records for which no answer of the broker has arrived yet."""
        return self.sent - self.delivered - self.failed

    @property
    def advice(self) -> str:
        """A semicolon and advice about undelivered records, or an empty text if no advice is known."""
        known = [advice for name, advice in _ADVICE.items() if name in self._errors]
        return "".join(f"; {advice}" for advice in dict.fromkeys(known))

    def check_topic(self, topic: str, partition: int | None = None) -> None:
        """Raise an error if a record cannot be sent to a topic or a partition.

        Raises `BadUsage` if the topic or the partition is invalid or does not exist, and `BrokerFailure` if
        the broker refuses the topic. Each topic is looked up only once. If the user is not allowed to
        describe a topic, no error is raised, because sending to the topic may be allowed.
        """
        if topic not in self._topics:
            try:
                check_topic_name(topic)
                self._topics[topic] = self._session.partitions(self._producer, topic)
            except TopicNotAllowed:
                self._topics[topic] = None
            except (BadUsage, BrokerFailure) as error:
                if isinstance(error, BrokerFailure) and not error.is_of_topic:
                    raise
                self._topics[topic] = error
        found = self._topics[topic]
        if isinstance(found, BadUsage | BrokerFailure):
            raise found
        if partition is not None and found is not None:
            check_partitions(topic, [partition], found)

    def send(
        self, record: Record, origin: str, on_answer: Callable[[KafkaError | None], None] | None = None
    ) -> None:
        """Send a record to its topic; if the client's queue is full, wait.

        If ``on_answer`` is passed, it is called with the error of the record, or with None after the
        delivery. If ``on_answer`` is passed, ``report`` is not called for the record. Raises
        `BadUsage` if the topic or the partition does not exist, and `BrokerFailure` if no broker answers
        within the timeout.
        """
        self.check_topic(record.topic or "", record.partition)

        def answered(error: KafkaError | None, message: Any) -> None:
            self._last_answer = time.monotonic()
            if on_answer is not None:
                on_answer(error)
            if error is None:
                self.delivered += 1
                if self._on_delivered is not None:
                    place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
                    self._print(self._on_delivered, place)
            else:
                self.failed += 1
                self._errors.add(error.name())
                if on_answer is None:
                    self._print(self._report, origin, f"not delivered: {error.str()}")

        options: dict[str, Any] = {"on_delivery": answered}
        if record.headers:
            options["headers"] = list(record.headers)
        if record.partition is not None:
            options["partition"] = record.partition
        if record.timestamp is not None:
            options["timestamp"] = record.timestamp
        if not self.unanswered:
            self._last_answer = time.monotonic()  # the timeout starts with the first unanswered record
        self.sent += 1
        self._produce(record, options)
        self.poll()

    def _produce(self, record: Record, options: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(record.topic or "", value=record.value, key=record.key, **options)
            except BufferError:
                self._poll(_WAIT_SECONDS)
                self._check_timeout()
            except KafkaException as error:  # the client refuses this record, for example as too large
                reason = error.args[0]
                if reason.fatal() or reason.name() == "_FATAL":
                    raise self._session.failure("failed", reason) from None
                options["on_delivery"](error.args[0], None)
                return
            else:
                return

    def poll(self) -> bool:
        """Process the answers of the broker that have arrived; return whether answers are still missing."""
        self._poll(0)
        self._check_printed()
        return self.unanswered > 0

    def _poll(self, seconds: float) -> None:
        with self._session.client_errors():
            self._producer.poll(seconds)

    def flush(self) -> None:
        """Wait until the broker has answered for all sent records.

        Raises `BrokerFailure` after the timeout.
        """
        try:
            with self._session.client_errors():
                while self._producer.flush(_WAIT_SECONDS):
                    self._check_timeout()
        finally:
            if self.unanswered:
                records = pluralize(self.unanswered, "record")
                print_message(f"{records} may or may not be delivered")
        self._check_printed()

    def _print(self, write: Callable[..., None], *texts: str) -> None:
        if self._print_error is None:
            try:
                write(*texts)
            except OSError as error:  # raised here, it would end the client's call, and answers would be lost
                self._print_error = error

    def _check_printed(self) -> None:
        if self._print_error is not None:
            raise self._print_error

    def _check_timeout(self) -> None:
        if time.monotonic() - self._last_answer > self._session.timeout:
            records = f"{self.unanswered:,} of {pluralize(self.sent, 'record')}"
            raise self._session.failure(f"did not answer within {self._session.timeout:g} s for {records}")
