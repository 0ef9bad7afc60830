"""`MetricsListener` writes metrics of streaming queries that users start themselves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from cloudevents_kafka.spark.pipeline.watching import Metrics


class MetricsListener(StreamingQueryListener):  # type: ignore[misc]  # without PySpark it is Any
    """Writes metrics of a streaming query to a file, or serves these metrics to Prometheus.

    The metrics have the same form as the metrics of a pipeline. Pass the listener to
    ``spark.streams.addListener``, and call `close` at the end. The metrics are the values that Spark reports:
    batches, records, seconds by step, and the lag of Kafka's partitions. Counts of event types and
    quarantined records are available only from `EventPipeline`. A pipeline needs no listener. Use one
    listener for each query, because the metrics do not contain the name of the query. The arguments are the
    same as the options of `PipelineOptions`. Raises `PipelineFailed` if the file or the port cannot be used.

    Examples:
        >>> from cloudevents_kafka.spark import MetricsListener
        >>> listener = MetricsListener(metrics_file="lake/metrics.jsonl")
        >>> spark.streams.addListener(listener)
        >>> spark.streams.removeListener(listener)
        >>> listener.close()
    """

    def __init__(
        self,
        *,
        metrics_file: str | None = None,
        metrics_port: int | str | None = None,
        warn: Callable[[str], object] = warnings.warn,
    ) -> None:
        self._metrics = Metrics(metrics_file, metrics_port, warn)
        self.metrics_url = self._metrics.url

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Add Spark's report on a batch to the metrics."""
        self._metrics.add_report(event.progress)

    def onQueryIdle(self, event: Any) -> None:  # noqa: ARG002, N802  # Spark's name
        """Write the lags of the partitions if there was no batch for a minute."""
        self._metrics.look()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""

    def close(self) -> None:
        """Stop the server that Prometheus reads from."""
        self._metrics.close()
