"""The output of ``pipeline``: a line for each batch and each warning, and the summary at the end."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.cli.terminal.streams import Waiting
from cloudevents_kafka.cli.terminal.text import escape_json, escape_lines
from cloudevents_kafka.spark import pipeline

_HEARTBEAT_SECONDS: Final = 60.0


class Console:
    """Prints a line on stderr for each batch, for each warning, and for each minute without a batch."""

    def __init__(self, settings: Settings, interrupts: Interrupts, path: Path | None, *, quiet: bool) -> None:
        self._settings, self._interrupts, self._path, self._quiet = settings, interrupts, path, quiet
        self._announced = False
        self._waiting = Waiting(self._wait_text, enabled=not quiet)
        self._has_started = False
        self._last_line = time.monotonic()
        self._running: pipeline.EventPipeline | None = None

    def run(self, options: pipeline.PipelineOptions) -> pipeline.Summary:
        """Run a pipeline, print its progress, and return its summary."""
        self._running = pipeline.EventPipeline(options, report=self._report, warn=self._warn)
        self._print("starting Spark, which takes some seconds")
        with self._waiting:
            if options.metrics_port is not None:
                url = self._running.start().metrics_url
                self._waiting.erase()
                click.echo(f"metrics: {url}", err=True)
            return self._running.run(stop=self._stop)

    def _wait_text(self) -> str:
        return "waiting for the first batch" if self._has_started else "starting Spark"

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        self._waiting.erase()
        if not self._quiet:
            click.echo(f"{datetime.now(UTC):%H:%M:%SZ} {text}", err=True)

    def _report(self, batch: pipeline.BatchProgress) -> None:
        self._waiting.clear()
        self._print(str(batch))
        if self._path is not None and self._running is not None:
            _write_summary(self._running.summary(), self._path)

    def _stop(self) -> bool:
        """Return whether the run must stop; if a minute has passed without a line, print the run's state."""
        self._has_started = True
        if self._interrupts.requested and not self._announced:
            self._waiting.clear()
            self._announced = True
            click.echo("stopping after this batch; press Ctrl-C again to stop at once", err=True)
        elif self._running is not None and time.monotonic() > self._last_line + _HEARTBEAT_SECONDS:
            self._print(escape_lines(self._running.status()))
        return self._interrupts.requested

    def _warn(self, text: str) -> None:
        self._waiting.erase()
        click.echo(f"warning: {escape_lines(self._settings.redact(text))}", err=True)


def _write_summary(summary: pipeline.Summary, path: Path) -> None:
    """Write the summary of a run.

    A file is replaced in one step, so that no program reads an incomplete summary.
    """
    if not path.exists() or path.is_file():
        draft = path.with_name(f"{path.name}.part")
        draft.write_text(summary.to_json() + "\n", encoding="utf-8")
        draft.replace(path)
    else:  # a pipe or a device, such as /dev/stdout
        path.write_text(summary.to_json() + "\n", encoding="utf-8")


def print_summary(summary: pipeline.Summary, summary_json: str | None) -> None:
    """Print the summary of a run, or write it to a JSON file."""
    if summary_json == "-":
        print(escape_json(summary.to_json()))
        return
    print(summary.to_text())
    if summary_json is not None:
        _write_summary(summary, Path(summary_json))
