"""`PrometheusObserver`: figures of what is sent, received, handled and committed.

Names that a pipeline's figures have, too, are the same with the same labels. A figure has at most
`MOST_LABELS` sets of labels, as types are untrusted input: those that came first, and one for all others.
Lags are those of the partitions that the consumer has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients.observing._protocol import Notice, Observer
from cloudevents_kafka.primitives.bounded import OTHERS

__all__ = ["PrometheusObserver"]

PREFIX: Final = "cloudevents_kafka_"
MOST_LABELS: Final = 100
FIGURES: Final = {
    "delivered_records_total": (("topic",), "Records that a broker has."),
    "delivered_bytes_total": (("topic",), "Bytes of their values."),
    "failed_records_total": (("topic", "error"), "Records that were not delivered."),
    "delivery_seconds": (("topic",), "Seconds from the call that sends to the report."),
    "received_records_total": (("topic",), "Records that consumers have returned."),
    "received_bytes_total": (("topic",), "Bytes of their values."),
    "events_total": (("type",), "Events by type."),
    "refused_records_total": (("verdict", "clause"), "Records that are not read as events."),
    "handling_seconds": (
        ("topic", "error"),
        "Seconds of handlers; without an error they have returned.",
    ),
    "retried_records_total": (("topic", "error"), "Further tries of records that have failed."),
    "skipped_records_total": (("topic", "error"), "Records that have failed, and are left out."),
    "dead_records_total": (("topic", "error"), "Records that have failed, and are dead letters."),
    "lag_records": (
        ("topic", "partition"),
        "Offsets before the end that are not committed yet.",
    ),
    "lag_seconds": (("topic", "partition"), "Age of the newest received record; 0 at the end."),
}


class _Position(msgspec.Struct):
    """Where a consumer is in a partition; without commits it is where it has received."""

    end: int = 0
    received: int = 0
    committed: int | None = None
    newest: float = 0.0

    @property
    def lag(self) -> int:
        return max(0, self.end - (self.received if self.committed is None else self.committed))


class PrometheusObserver(Observer):
    """Figures in a registry of prometheus_client, by default the global one; needs the extra ``metrics``.

    Serve them by ``prometheus_client.start_http_server``. One observer may be that of any number of
    clients, and a registry can have only one.

    Examples:
        >>> from prometheus_client import CollectorRegistry
        >>> from cloudevents_kafka import EventConsumer
        >>> from cloudevents_kafka.clients.observing.prometheus import PrometheusObserver
        >>> figures = CollectorRegistry()
        >>> with EventConsumer(consumer, observers=[PrometheusObserver(figures)]) as events:
        ...     counts = events.run(lambda item: None, idle_timeout=0.1)
        >>> figures.get_sample_value("cloudevents_kafka_events_total", {"type": "order.placed"})
        2.0
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._known: dict[str, set[tuple[str, ...]]] = {name: set() for name in FIGURES}
        self._positions: dict[tuple[str, str], _Position] = {}
        self._figures: dict[str, Any] = {}
        for name, (labels, text) in FIGURES.items():
            kind = Counter if name.endswith("_total") else Gauge if name.startswith("lag") else Histogram
            self._figures[name] = kind(PREFIX + name, text, labels, registry=registry)

    def _of(self, name: str, *labels: str | None) -> Any:
        """Return the child of a figure for labels, or the one for all others."""
        known, texts = self._known[name], tuple(label or "" for label in labels)
        if texts not in known and len(known) >= MOST_LABELS - 1:
            texts = (OTHERS,) * len(texts)
        known.add(texts)
        return self._figures[name].labels(*texts)

    def delivered(self, notice: Notice) -> None:
        """Count a delivery."""
        self._of("delivered_records_total", notice.topic).inc()
        self._of("delivered_bytes_total", notice.topic).inc(notice.value_size)
        self._of("delivery_seconds", notice.topic).observe(notice.seconds or 0.0)

    def failed(self, notice: Notice) -> None:
        """Count a failed delivery."""
        self._of("failed_records_total", notice.topic, notice.error_name).inc()

    @contextmanager
    def handling(self, item: Decoded | Undecodable, /) -> Iterator[None]:
        """Return a context manager that measures a handler."""
        began, error_name = time.monotonic(), ""
        try:
            yield
        except BaseException as error:
            error_name = type(error).__name__
            raise
        finally:
            figure = self._of("handling_seconds", item.record.topic, error_name)
            figure.observe(time.monotonic() - began)

    def received(self, notices: Sequence[Notice]) -> None:
        """Count records, and see how far the consumer is."""
        for notice in notices:
            self._of("received_records_total", notice.topic).inc()
            self._of("received_bytes_total", notice.topic).inc(notice.value_size)
            if notice.event is not None:
                self._of("events_total", notice.event.type).inc()
            else:
                self._of("refused_records_total", notice.verdict, notice.clause).inc()
            if notice.offset is not None and notice.record is not None:
                newest = (notice.record.timestamp or 0) / 1000
                self._move(notice, received=notice.offset + 1, newest=newest)

    def retried(self, notice: Notice) -> None:
        """Count a further try."""
        self._of("retried_records_total", notice.topic, notice.error_name).inc()

    def skipped(self, notice: Notice) -> None:
        """Count a record that is left out."""
        self._of("skipped_records_total", notice.topic, notice.error_name).inc()

    def dead_lettered(self, notice: Notice) -> None:
        """Count a dead letter."""
        self._of("dead_records_total", notice.topic, notice.error_name).inc()

    def committed(self, notices: Sequence[Notice]) -> None:
        """See how far the group is."""
        for notice in notices:
            self._move(notice, committed=notice.offset)

    def revoked(self, notices: Sequence[Notice]) -> None:
        """Forget the lags of partitions."""
        for notice in notices:
            place = (notice.topic or "", str(notice.partition))
            if self._positions.pop(place, None) is not None:
                self._figures["lag_records"].remove(*place)
                self._figures["lag_seconds"].remove(*place)

    def _move(self, notice: Notice, **fields: Any) -> None:
        place = (notice.topic or "", str(notice.partition))
        position = self._positions.setdefault(place, _Position())
        for name, value in fields.items():
            setattr(position, name, value)
        position.end = max(position.end, notice.end or 0, position.received)
        self._figures["lag_records"].labels(*place).set(position.lag)
        age = partial(_age, position)
        self._figures["lag_seconds"].labels(*place).set_function(age)


def _age(position: _Position) -> float:
    return max(0.0, time.time() - position.newest) if position.lag and position.newest else 0.0
