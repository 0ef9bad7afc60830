"""Send records through a producer, and count the broker's answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.cli.kafka._session import BrokerSession, kafka_errors
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

_WAIT_SECONDS: Final = 0.2  # in one call, which signals do not end

OnFailure = Callable[[str, "KafkaError"], None]
"""A function that is called with the origin (file and line) of an undelivered record, and the error."""


class Sender:
    """A sender of records in order; ``sent``, ``delivered`` and ``failed`` are the counts so far."""

    def __init__(self, producer: Producer, session: BrokerSession, on_failure: OnFailure) -> None:
        self._producer = producer
        self._session = session
        self._on_failure = on_failure
        self._last_answer = time.monotonic()
        self.delivered = 0
        self.failed = 0
        self.sent = 0

    @property
    def unanswered(self) -> int:
        """The number of records that the broker has not answered yet."""
        return self.sent - self.delivered - self.failed

    def send(self, record: Record, origin: str) -> None:
        """Send a record to its topic; wait if the client's queue is full.

        Raises `BrokerFailure` if no broker answers within the timeout.
        """

        def report(error: KafkaError | None, message: Any) -> None:  # noqa: ARG001  # the client passes both
            self._last_answer = time.monotonic()
            if error is None:
                self.delivered += 1
            else:
                self.failed += 1
                self._on_failure(origin, error)

        options: dict[str, Any] = {"on_delivery": report}
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
        self._producer.poll(0)

    def _produce(self, record: Record, options: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(record.topic or "", value=record.value, key=record.key, **options)
            except BufferError:
                self._producer.poll(_WAIT_SECONDS)
                self._check_timeout()
            except KafkaException as error:  # the client refuses this record, for example as too large
                if error.args[0].fatal():
                    raise self._session.failure("failed", error.args[0]) from None
                options["on_delivery"](error.args[0], None)
                return
            else:
                return

    def flush(self) -> None:
        """Wait for the answers to all records; raises `BrokerFailure` after the timeout."""
        with kafka_errors(self._session):
            while self._producer.flush(_WAIT_SECONDS):
                self._check_timeout()

    def _check_timeout(self) -> None:
        if time.monotonic() - self._last_answer > self._session.timeout:
            records = f"{self.unanswered:,} of {pluralize(self.sent, 'record')}"
            raise self._session.failure(f"did not answer within {self._session.timeout:g} s for {records}")
