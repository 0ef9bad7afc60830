"""`MetricsListener`: the figures of streaming queries that users start themselves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from cloudevents_kafka.spark.pipeline.watching import Metrics


class MetricsListener(StreamingQueryListener):  # type: ignore[misc]  # without PySpark it is Any
    """Writes the figures of streaming queries to a file, or serves them to Prometheus, as a pipeline does.

    Pass it to ``spark.streams.addListener``, and call `close` at the end. It has what Spark reports: batches,
    records, seconds by step, and the lag of Kafka's partitions. Types and the quarantine are counted by
    `EventPipeline` only, which needs no listener. Use one for each query, as figures have no name of a query.
    The arguments are those of `PipelineOptions`. Raises `PipelineFailed` if file or port cannot be used.

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
        """Add what Spark reports of a batch."""
        self._metrics.add_report(event.progress)

    def onQueryIdle(self, event: Any) -> None:  # noqa: ARG002, N802  # Spark's name
        """Write the lags after a minute without a batch."""
        self._metrics.look()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  # Spark's name
        """Do nothing."""

    def close(self) -> None:
        """Stop to serve."""
        self._metrics.close()
