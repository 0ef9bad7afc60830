"""Two checkouts of this library, each in a process, timed by turns."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import cloudevents_kafka

_SCRIPT = Path(__file__).with_name("shapes.py")


class Worker:
    """A process that imports one checkout, by default this one, and times works by name."""

    def __init__(self, checkout: str | None) -> None:
        folder = Path(checkout or Path(__file__).parents[1]).resolve()
        if not (folder / "cloudevents_kafka").is_dir():
            raise SystemExit(f"--against must name a checkout of cloudevents_kafka, got {folder}")
        self._process = subprocess.Popen(
            [sys.executable, str(_SCRIPT), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
        )
        self.location = str(self._ask({})["location"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def time(self, name: str, calls: int) -> float | None:
        """Return the seconds per call, or None if this checkout raises an error."""
        seconds: float | None = self._ask({"name": name, "calls": calls})["seconds"]
        return seconds

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def times_by_turns(
    own: Worker, other: Worker, name: str, *, rounds: int, calls: int
) -> tuple[list[float], list[float]]:
    """Return the seconds per call of both workers in each round, which begin in turn.

    The worker that begins finds colder caches. The first round is not counted.
    """
    timings: tuple[list[float], list[float]] = ([], [])
    pairs = [*zip((own, other), timings, strict=True)]
    for number in range(rounds + 1):
        for worker, times in pairs if number % 2 else reversed(pairs):
            seconds = worker.time(name, calls)
            if seconds is not None and number:
                times.append(seconds)
    return timings


def serve(works: dict[str, Callable[[], object]]) -> None:
    """Answer the questions of `Worker` until the end of stdin."""
    gc.disable()
    for line in sys.stdin:
        question = json.loads(line)
        if question:
            answer: dict[str, Any] = {"seconds": _time(works[question["name"]], question["calls"])}
        else:
            answer = {"location": str(Path(cloudevents_kafka.__file__).parent)}
        print(json.dumps(answer), flush=True)


def _time(work: Callable[[], object], calls: int) -> float | None:
    try:
        work()
    except Exception:  # noqa: BLE001  # an older checkout may refuse a shape
        return None
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls
