"""`PrometheusObserver`: counts and times records that are sent, received, handled and committed.

A running pipeline exports some of these metrics, too, with the same names and labels. The observer's lag
metrics, unlike the lag metrics of a pipeline, have a label for the consumer group. Values of labels, such as
types of events, are untrusted input. Therefore, each metric has at most `MOST_LABELS` combinations of label
values, and each lag metric has at most `MOST_LAGS` combinations. The combinations that occur first are
counted separately, and all later combinations are counted together. A label value that is longer than
`MAX_KEY_LENGTH` becomes `OTHERS`. The lags of a partition are exported from the first record that a consumer
receives, until the partition is no longer assigned to this consumer. Consumers to which the partition is not
assigned do not change its lags.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.clients.observing._protocol import Notice, Observer
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, OTHERS

__all__ = ["PrometheusObserver"]

PREFIX: Final = "cloudevents_kafka_"
MOST_LABELS: Final = 100
MOST_LAGS: Final = 1000
_PLACE: Final = ("group", "topic", "partition")
FIGURES: Final = {
    "delivered_records_total": (("topic",), "Records that a broker has stored."),
    "delivered_bytes_total": (("topic",), "Bytes of the values of delivered records."),
    "failed_records_total": (("topic", "error"), "Records that were not delivered."),
    "delivery_seconds": (("topic",), "Seconds from the call of `send` to the delivery report."),
    "received_records_total": (("topic",), "Records that consumers have returned."),
    "received_bytes_total": (("topic",), "Bytes of the values of received records."),
    "events_total": (("type",), "Received events, by type."),
    "refused_records_total": (("verdict", "clause"), "Received records that could not be read as events."),
    "handling_seconds": (
        ("topic", "error"),
        "Seconds that a handler took; the label `error` is empty if the handler raised no error.",
    ),
    "retried_records_total": (("topic", "error"), "Repeated tries to handle failed records."),
    "skipped_records_total": (("topic", "error"), "Failed records that were skipped."),
    "dead_records_total": (("topic", "error"), "Failed records that were sent as dead letters."),
    "lag_records": (_PLACE, "Number of offsets from the committed offset to the end of the partition."),
    "lag_seconds": (_PLACE, "Age of the newest received record in seconds; 0 if `lag_records` is 0."),
}


class _Position(msgspec.Struct):
    """The position of a consumer in a partition; the lag is calculated from this position.

    ``reached`` is the offset at which the consumer's client continues to read. Between the last received
    record and ``reached``, the partition contains only transaction markers and records of aborted
    transactions.
    """

    consumer: int | None
    end: int = 0
    received: int = 0
    reached: int = 0
    committed: int | None = None
    newest: float = 0.0

    @property
    def lag(self) -> int:
        last = self.received if self.reached >= self.end else self.end
        return max(0, last - (self.received if self.committed is None else self.committed))

    def age(self) -> float:
        return max(0.0, time.time() - self.newest) if self.lag and self.newest else 0.0


class _Lags(Collector):
    """The lags of partitions; they are calculated when Prometheus collects the metrics."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, ...], _Position] = {}

    def receive(self, notice: Notice, newest: float) -> None:
        """Set a consumer's position after a received record; the consumer now owns the partition.

        If the timestamp of the record is in the future, the age of the record is measured from its receipt.
        """
        place = _place_of(notice)
        position = self._positions.get(place)
        if position is None or position.consumer != notice.consumer:
            position = self._positions[place] = _Position(notice.consumer)
        position.received = position.reached = (notice.offset or 0) + 1
        position.newest = min(newest, time.time())
        self._move(position, notice)

    def commit(self, notice: Notice) -> None:
        """Set the committed offset of a partition, if the partition belongs to the notice's consumer."""
        if (position := self._of_consumer(notice)) is not None:
            position.committed = notice.offset
            self._move(position, notice)

    def reach(self, notice: Notice) -> None:
        """Set the next offset to read, if the partition belongs to the notice's consumer."""
        if (position := self._of_consumer(notice)) is not None:
            position.reached = notice.offset or 0
            self._move(position, notice)

    def revoke(self, notice: Notice) -> None:
        """Forget a partition, unless another consumer has already received a record of the partition."""
        if self._of_consumer(notice) is not None:
            self._positions.pop(_place_of(notice), None)

    def _of_consumer(self, notice: Notice) -> _Position | None:
        position = self._positions.get(_place_of(notice))
        return position if position is not None and position.consumer == notice.consumer else None

    def _move(self, position: _Position, notice: Notice) -> None:
        position.end = max(position.end, notice.end or 0, position.received)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield both lag metrics.

        If there are more than `MOST_LAGS` partitions, the additional partitions have one common lag: the sum
        of their lags, and their greatest age.
        """
        places = [(place, each.lag, each.age()) for place, each in self._positions.copy().items()]
        own = len(places) if len(places) <= MOST_LAGS else MOST_LAGS - 1
        found, others = places[:own], places[own:]
        if others:
            found.append(
                ((OTHERS,) * len(_PLACE), sum(each[1] for each in others), max(each[2] for each in others))
            )
        records, seconds = (
            GaugeMetricFamily(PREFIX + name, text, labels=labels)
            for name, (labels, text) in FIGURES.items()
            if labels == _PLACE
        )
        for place, lag, age in found:
            records.add_metric(place, lag)
            seconds.add_metric(place, age)
        yield records
        yield seconds


def _place_of(notice: Notice) -> tuple[str, ...]:
    return _short(notice.group), _short(notice.topic), str(notice.partition)


def _short(label: str | None) -> str:
    """Return the value of a label, or `OTHERS` if the value is too long."""
    return "" if label is None else label if len(label) <= MAX_KEY_LENGTH else OTHERS


class PrometheusObserver(Observer):
    """Makes metrics in a registry of prometheus_client. Needs the extra ``metrics``.

    By default, the registry is prometheus_client's global registry. Serve the metrics with
    ``prometheus_client.start_http_server``. One observer may be passed to any number of clients, but a
    registry accepts only one observer.

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
        self._figures: dict[str, Any] = {}
        for name, (labels, text) in FIGURES.items():
            if labels != _PLACE:
                kind = Counter if name.endswith("_total") else Histogram
                self._figures[name] = kind(PREFIX + name, text, labels, registry=registry)
        self._lags = _Lags()
        registry.register(self._lags)

    def _of(self, name: str, *labels: str | None) -> Any:
        """Return the metric's child for these labels, or one common child if there are too many labels."""
        known, texts = self._known[name], tuple(map(_short, labels))
        if texts not in known and len(known) >= MOST_LABELS - 1:
            texts = (OTHERS,) * len(texts)
        known.add(texts)
        return self._figures[name].labels(*texts)

    def delivered(self, notice: Notice) -> None:
        """Count a delivered record."""
        self._of("delivered_records_total", notice.topic).inc()
        self._of("delivered_bytes_total", notice.topic).inc(notice.value_size)
        self._of("delivery_seconds", notice.topic).observe(notice.seconds or 0.0)

    def failed(self, notice: Notice) -> None:
        """Count a failed delivery."""
        self._of("failed_records_total", notice.topic, notice.error_name).inc()

    @contextmanager
    def handling(self, item: Decoded | Undecodable, /) -> Iterator[None]:
        """Return a context manager that measures how long a handler takes."""
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
        """Count the received records, and update the consumer's positions."""
        for notice in notices:
            self._of("received_records_total", notice.topic).inc()
            self._of("received_bytes_total", notice.topic).inc(notice.value_size)
            if notice.event is not None:
                self._of("events_total", notice.event.type).inc()
            else:
                self._of("refused_records_total", notice.verdict, notice.clause).inc()
            if notice.offset is not None and notice.record is not None:
                self._lags.receive(notice, (notice.record.timestamp or 0) / 1000)

    def retried(self, notice: Notice) -> None:
        """Count a further try."""
        self._of("retried_records_total", notice.topic, notice.error_name).inc()

    def skipped(self, notice: Notice) -> None:
        """Count a record that is skipped."""
        self._of("skipped_records_total", notice.topic, notice.error_name).inc()

    def dead_lettered(self, notice: Notice) -> None:
        """Count a dead letter."""
        self._of("dead_records_total", notice.topic, notice.error_name).inc()

    def committed(self, notices: Sequence[Notice]) -> None:
        """Update the offsets that the group has committed."""
        for notice in notices:
            self._lags.commit(notice)

    def reached(self, notices: Sequence[Notice]) -> None:
        """Update the offsets from which the client reads next."""
        for notice in notices:
            self._lags.reach(notice)

    def revoked(self, notices: Sequence[Notice]) -> None:
        """Forget the lags of partitions that are no longer assigned to the consumer."""
        for notice in notices:
            self._lags.revoke(notice)
