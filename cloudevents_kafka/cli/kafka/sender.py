"""Send records through a producer, and know what became of each."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.cli.kafka.clients import Reach, kafka_errors
from cloudevents_kafka.cli.terminal.errors import BrokerTrouble
from cloudevents_kafka.cli.terminal.plural import count
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

_TURN: Final = 0.2  # seconds

OnFailure = Callable[[str, "KafkaError"], None]
"""Told where a record came from (a file and a line), and why it was not delivered."""


class Sender:
    """Sends records in order; ``delivered`` and ``failed`` count what brokers answered."""

    def __init__(self, producer: Producer, reach: Reach, on_failure: OnFailure) -> None:
        self._producer = producer
        self._reach = reach
        self._on_failure = on_failure
        self._heard = time.monotonic()
        self.delivered = 0
        self.failed = 0
        self.sent = 0

    def send(self, record: Record, came_from: str) -> None:
        """Send a record to its topic; waits where the client's queue is full.

        Raises `BrokerTrouble` where nothing gets away for too long.
        """

        def report(error: KafkaError | None, message: Any) -> None:  # noqa: ARG001  # the client gives both
            self._heard = time.monotonic()
            if error is None:
                self.delivered += 1
            else:
                self.failed += 1
                self._on_failure(came_from, error)

        options: dict[str, Any] = {"on_delivery": report}
        if record.headers:
            options["headers"] = list(record.headers)
        if record.partition is not None:
            options["partition"] = record.partition
        if record.timestamp is not None:
            options["timestamp"] = record.timestamp
        if self.sent == self.delivered + self.failed:
            self._heard = time.monotonic()  # nothing was owed, so no silence has begun
        self.sent += 1
        self._produce(record, options)
        self._producer.poll(0)

    def _produce(self, record: Record, options: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(record.topic or "", value=record.value, key=record.key, **options)
            except BufferError:
                self._producer.poll(_TURN)
                self._check_silence()
            except KafkaException as error:  # one record that the client itself turns down, as too large
                if error.args[0].fatal():
                    raise self._reach.trouble("failed", error.args[0]) from None
                options["on_delivery"](error.args[0], None)
                return
            else:
                return

    def flush(self) -> None:
        """Wait until brokers answered for everything sent; raises `BrokerTrouble` where they do not."""
        with kafka_errors(self._reach):
            while self._producer.flush(_TURN):
                self._check_silence()

    def _check_silence(self) -> None:
        if time.monotonic() - self._heard > self._reach.timeout:
            raise self.trouble()

    def trouble(self) -> BrokerTrouble:
        """Make the error of records of which nobody knows what became."""
        owed = self.sent - self.delivered - self.failed
        silence = (
            f"did not answer within {self._reach.timeout:g} s for {owed:,} of {count(self.sent, 'record')}"
        )
        return self._reach.trouble(silence)
