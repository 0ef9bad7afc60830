"""`Metrics` writes the metrics of a run to a file, and serves them to Prometheus.

A pipeline adds its own batches, and `MetricsListener` adds the batches of any query. If the metrics file or
the port cannot be opened at the start, an error is raised. Later, the first failure to write metrics causes a
warning, and no failure ends the run. Types of events are untrusted input, so a metric has at most
`MOST_LABELS` combinations of label values. The combinations of label values that occur first are counted
separately. All other combinations of label values are counted together, as one combination.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.primitives.installing import pip_install
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import BatchCounts
from cloudevents_kafka.spark.pipeline.watching._figures import (
    FIGURES,
    PREFIX,
    Labels,
    Lags,
    Values,
    batch_values,
)
from cloudevents_kafka.spark.pipeline.watching._reports import BatchProgress, batch_progress

MOST_LABELS: Final = 100
_IDLE_SECONDS: Final = 60.0
_LAG_SECONDS: Final = 1.0  # after this time, the lags are computed again


class Metrics:
    """The metrics of a run; the caller must call `close` at the end."""

    def __init__(
        self,
        file: str | None = None,
        port: int | str | None = None,
        warn: Callable[[str], object] = warnings.warn,
    ) -> None:
        """Open the metrics file and the port; raise `PipelineFailed` if one of the two cannot be used."""
        self.lags = Lags()
        self.stopped: set[str] = set()
        self.url: str | None = None
        self._warn, self._has_warned = warn, False
        self._labels: dict[str, set[Labels]] = {figure.name: set() for figure in FIGURES}
        self._line_at = self._lags_at = time.monotonic()
        self._server: Any = None
        self._path = None if file is None else Path(file)
        self._shown: dict[str, Any] = {}
        try:
            if port is not None or (self._path and self._path.suffix == ".prom"):
                self._register()
            self._write(b"")
            if port is not None:
                self._serve(*split_address(port))
        except OSError as error:
            raise PipelineFailed(
                "metrics_file must be a file that can be written, and metrics_port a free port of this "
                f"machine, got {file} and {port}: {error}; choose another file or port (0 is any free port)",
                final=True,
            ) from error

    def _register(self) -> None:
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge
        except ModuleNotFoundError as error:
            advice = f"needs prometheus_client, which is not installed: {pip_install('metrics')}"
            raise ModuleNotFoundError(f"Prometheus {advice}", name=error.name) from error
        self._registry = CollectorRegistry()
        for figure in FIGURES:
            kind = Counter if figure.is_counter else Gauge
            shown = kind(PREFIX + figure.name, figure.text, figure.labels, registry=self._registry)
            self._shown[figure.name] = shown

    def _serve(self, host: str, port: int) -> None:
        from prometheus_client import start_http_server

        self._server, self._thread = start_http_server(port, host, self._registry)
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._server.server_port}/metrics"

    def add(self, batch: BatchProgress) -> None:
        """Add a batch that has landed, and write the metrics of this batch."""
        self.lags.add(batch)
        found = {name: self._bounded(name, values) for name, values in batch_values(batch).items()}
        self._write_line(batch.number, found)

    def add_report(self, report: Mapping[str, Any]) -> None:
        """Add a batch of any Spark query; only Spark's report about this batch is known."""
        self.add(batch_progress(report, BatchCounts(read=report["numInputRows"] or 0), time.time()))

    def look(self) -> None:
        """Compute the lags again; after a minute without a batch, also write the lags to the metrics file."""
        if time.monotonic() > self._line_at + _IDLE_SECONDS:
            self._write_line(None, {})
        elif self._shown and time.monotonic() > self._lags_at + _LAG_SECONDS:
            self._show(self._gauges())

    def _bounded(self, name: str, values: dict[Labels, float]) -> dict[Labels, float]:
        """Return the values of a metric with at most `MOST_LABELS` combinations of label values.

        The values of all further combinations are added up under the label value `OTHERS`.
        """
        known, found = self._labels[name], dict[Labels, float]()
        for labels, value in sorted(values.items(), key=lambda item: -item[1]):
            key = tuple(label.encode("utf-8", "replace").decode() for label in labels)
            if key not in known and len(known) >= MOST_LABELS - 1:
                key = (OTHERS,) * len(labels)
            known.add(key)
            found[key] = found.get(key, 0) + value
        return found

    def _gauges(self) -> Values:
        self._lags_at = time.monotonic()
        stopped: dict[Labels, float] = {(topic,): 1 for topic in self.stopped}
        seconds = self.lags.seconds(time.time())
        return {"lag_records": self.lags.records, "lag_seconds": seconds, "topic_stopped": stopped}

    def _show(self, values: Values) -> None:
        for name, found in values.items() if self._shown else ():
            shown, is_counter = self._shown[name], name.endswith("_total")
            for gone in () if is_counter else self._labels[name] - found.keys():
                shown.remove(*gone)
            if not is_counter:
                self._labels[name] = set(found)
            for labels, value in found.items():
                child = shown.labels(*labels) if labels else shown
                (child.inc if is_counter else child.set)(value)

    def _write_line(self, batch: int | None, counted: Values) -> None:
        self._line_at = time.monotonic()
        values = counted | self._gauges()
        self._show(values)
        line: dict[str, Any] = {"time": datetime.now(UTC).isoformat(), "batch": batch}
        for name, found in values.items():
            texts = {"/".join(labels): value for labels, value in found.items()}
            line[name.removesuffix("_total")] = texts.get("", texts) if () in found else texts
        try:
            self._write(msgspec.json.encode(line) + b"\n")
        except OSError as error:
            if not self._has_warned:
                self._warn(f"the metrics cannot be written to {self._path}: {error}; the run goes on")
            self._has_warned = True

    def _write(self, line: bytes) -> None:
        if self._path is None:
            return
        if self._path.suffix == ".prom":
            from prometheus_client import write_to_textfile

            write_to_textfile(str(self._path), self._registry)
            return
        with self._path.open("ab") as file:
            file.write(line)

    def close(self) -> None:
        """Stop the server that Prometheus reads from."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None


def split_address(port: int | str) -> tuple[str, int]:
    """Return the host and the port in a text ``PORT`` or ``HOST:PORT``; the default host is 127.0.0.1."""
    host, _, number = str(port).rpartition(":")
    if not number.isdecimal() or int(number) > 65535:
        raise ValueError(f"metrics_port must be PORT or HOST:PORT, with a port up to 65535, got {port!r}")
    return host.strip("[]") or "127.0.0.1", int(number)
