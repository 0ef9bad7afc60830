"""The line protocol: a peer's runner reads a task as a line of JSON and writes its answer as one.

Bytes are hexadecimal digits, and null is Kafka's null. Tasks::

    {"op": "decode", "record": RECORD}
    {"op": "encode", "event": EVENT, "mode": "binary"|"structured", "format": "json", "key": bytes}

    RECORD  {"key": bytes, "value": bytes, "headers": [[name, bytes], …]}
    EVENT   {"attributes": [[name, type, canonical text], …], "data": null|{"kind": KIND, "hex": bytes}}
    KIND    "bytes", "text" (its UTF-8) or "json" (its text)

Answers are ``{"event": EVENT}``, ``{"record": RECORD}`` or ``{"error": text}``. What a runner gives
as type and kind is what the peer has; a peer without types says String. With arguments, a runner
talks to a broker: ``produce SERVERS TOPIC`` sends the tasks' events and answers ``{}`` for each;
``consume SERVERS TOPIC COUNT`` answers with the events of that many records, and their ``key``.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from threading import Timer
from types import TracebackType
from typing import Any, Self

from build import Program

from cloudevents_kafka import Record

Json = dict[str, Any]


class Runner:
    """A runner's process; a context manager. One that dies is started again, and has answered with that."""

    def __init__(self, program: Program, *arguments: str, patience: float = 60) -> None:
        self._command = [*program.command, *arguments]
        self._environment = {**os.environ, **program.environment}
        self._patience = patience
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> int | None:
        """End the process: by the end of its input, else by force; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        with process:
            timer = self._limit(process)
            if process.stdin is not None:
                process.stdin.close()
            code = process.wait()
            timer.cancel()
        return code

    def ask(self, tasks: Iterable[Json]) -> Iterator[Json]:
        """Give the answer to each task, in turn."""
        for task in tasks:
            yield self._ask(json.dumps(task) + "\n")

    def _ask(self, line: str) -> Json:
        process = self._started()
        timer = self._limit(process)
        try:
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.read()
        timer.cancel()
        return answer

    def read(self) -> Json:
        """Read one answer; the end of the process is one as well."""
        process = self._started()
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            answer: Json = json.loads(line)
            return answer
        return {"error": f"crash: the runner ended with exit code {self.close()}"}

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                env=self._environment,
            )
        return self._process

    def _limit(self, process: subprocess.Popen[str]) -> Timer:
        timer = Timer(self._patience, process.kill)
        timer.daemon = True
        timer.start()
        return timer


def as_task(record: Record) -> Json:
    """Write a record as the task to decode it."""
    headers = [[name, _digits(value)] for name, value in record.headers]
    return {
        "op": "decode",
        "record": {"key": _digits(record.key), "value": _digits(record.value), "headers": headers},
    }


def as_record(notation: Json) -> Record:
    """Read a record that a peer wrote."""
    return Record(
        key=octets(notation["key"]),
        value=octets(notation["value"]),
        headers=[(name, octets(value)) for name, value in notation["headers"]],
    )


def octets(digits: str | None) -> bytes | None:
    """Read the notation of bytes."""
    return None if digits is None else bytes.fromhex(digits)


def _digits(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
