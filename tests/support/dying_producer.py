"""A fake producer that dies of a fatal error, as librdkafka's idempotent producer does."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from cloudevents_kafka.testing import FakeLog, FakeProducer


class DyingProducer(FakeProducer):
    """Queues messages until `die` is called.

    After that, the next poll or flush raises the fatal error, what is queued is reported as purged, and
    ``produce`` refuses each message.
    """

    def __init__(self, log: FakeLog | None = None) -> None:
        super().__init__(log)
        self.hold = True
        self.is_dead = self._is_known = False

    def die(self) -> None:
        """Purge the queue because of a fatal error."""
        self.purge()
        self.hold, self.is_dead = False, True

    def _raise(self) -> None:
        if self.is_dead and not self._is_known:
            self._is_known = True
            raise KafkaException(KafkaError(45, "lost order", fatal=True))  # OUT_OF_ORDER_SEQUENCE_NUMBER

    def produce(self, *arguments: Any, **options: Any) -> None:
        if self.is_dead:
            raise KafkaException(KafkaError(KafkaError._FATAL, "Unable to produce message"))
        super().produce(*arguments, **options)

    def poll(self, timeout: float = -1) -> int:
        self._raise()
        return super().poll(timeout)

    def flush(self, timeout: float = -1) -> int:
        self._raise()
        return super().flush(timeout)
