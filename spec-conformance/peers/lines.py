"""The line protocol: a runner reads tasks and writes answers, each a line of JSON.

Bytes are hexadecimal digits, and null is Kafka's null. Tasks::

    {"op": "decode", "record": RECORD}
    {"op": "encode", "event": EVENT, "mode": "binary"|"structured", "format": "json", "key": bytes}

    RECORD  {"key": bytes, "value": bytes, "headers": [[name, bytes], …]}
    EVENT   {"attributes": [[name, type, canonical text], …], "data": null|{"kind": KIND, "hex": bytes}}
    KIND    "bytes", "text" (its UTF-8) or "json" (its text)

The type "Null" is an attribute whose value is null; only peers with ``nulls`` in peers.json get it.

Answers are ``{"event": EVENT}``, ``{"record": RECORD}`` or ``{"error": text}``. Type and
kind are those of the peer; a peer without types answers String. With arguments, a runner connects
to a broker: ``produce SERVERS TOPIC`` sends the events of the tasks and answers ``{}`` for each;
``consume SERVERS TOPIC COUNT`` answers with the events of that many records and their ``key``.
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
    """The process of a runner, as a context manager; after a crash, which is an answer, it starts again."""

    def __init__(self, program: Program, *arguments: str, timeout: float = 60) -> None:
        self._command = [*program.command, *arguments]
        self._environment = {**os.environ, **program.environment}
        self._timeout = timeout
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> int | None:
        """Close the input of the process, kill it after a timeout, and return its exit code."""
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
        """Yield the answer to each task."""
        for task in tasks:
            yield self._ask(json.dumps(task) + "\n")

    def _ask(self, line: str) -> Json:
        process = self._running()
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
        """Return one answer; the end of the process is an answer too."""
        process = self._running()
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            answer: Json = json.loads(line)
            return answer
        return {"error": f"crash: the runner ended with exit code {self.close()}"}

    def _running(self) -> subprocess.Popen[str]:
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
        timer = Timer(self._timeout, process.kill)
        timer.daemon = True
        timer.start()
        return timer


def as_task(record: Record) -> Json:
    """Return the task to decode a record."""
    headers = [[name, _hex(value)] for name, value in record.headers]
    return {
        "op": "decode",
        "record": {"key": _hex(record.key), "value": _hex(record.value), "headers": headers},
    }


def as_record(notation: Json) -> Record:
    """Return a record that a peer wrote."""
    return Record(
        key=as_bytes(notation["key"]),
        value=as_bytes(notation["value"]),
        headers=[(name, as_bytes(value)) for name, value in notation["headers"]],
    )


def as_bytes(digits: str | None) -> bytes | None:
    """Return the bytes of a notation."""
    return None if digits is None else bytes.fromhex(digits)


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
