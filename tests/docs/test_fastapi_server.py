"""The programs of the page about FastAPI, under a real uvicorn."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cloudevents_kafka.testing import LocalBroker
from tests.docs import pages

# They are not imported here, as each worker of pytest-xdist collects these tests.
IS_INSTALLED = all(find_spec(name) for name in ("fastapi", "uvicorn"))
pytestmark = [pytest.mark.broker, pytest.mark.skipif(not IS_INSTALLED, reason="needs fastapi and uvicorn")]
PAGE = pages.DOCS / "how-to" / "fastapi.md"
HANG = 60.0  # seconds that only a hang takes


class Server:
    """A process of uvicorn with the program ``shipping`` of the page, some texts of which are replaced."""

    def __init__(self, folder: Path, broker: LocalBroker, replaced: dict[str, str]) -> None:
        topic = broker.create_topic(f"shipping-{uuid.uuid4()}")
        pages.fill(broker.bootstrap_servers, topic)
        [code] = [block.code for block in pages.blocks(PAGE) if block.title == "shipping.py"]
        for old, new in {
            "localhost:9092": broker.bootstrap_servers,
            '"orders"': f'"{topic}"',
            '"shipping"': f'"{topic}"',
            **replaced,
        }.items():
            assert old in code
            code = code.replace(old, new)
        (folder / "shipping.py").write_text(code, "utf-8")
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "shipping:app", "--port", "0", "--host", "127.0.0.1"],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        self.address = ""

    @property
    def text(self) -> str:
        return self.log.read_text("utf-8")

    def wait_for(self, path: str, expected: Any) -> Any:
        """Return the body of an answer when its status, or its body, is the expected one."""
        deadline = time.monotonic() + HANG
        while True:
            if not self.address and (found := re.search(r"running on (\S+) ", self.text)):
                self.address = found[1]
            status, body = self.ask(path) if self.address else (0, None)
            if expected in (status, body):
                return body
            assert self.process.poll() is None, self.text
            assert time.monotonic() < deadline, f"{status} {body}\n{self.text}"
            time.sleep(0.05)

    def ask(self, path: str) -> tuple[int, Any]:
        try:
            with urlopen(self.address + path, timeout=HANG) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            return error.code, json.loads(error.read())

    def end(self) -> int:
        """Return how the process ends at SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(HANG)


@contextmanager
def serving(folder: Path, broker: LocalBroker, **replaced: str) -> Iterator[Server]:
    server = Server(folder, broker, replaced)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait(HANG)


FAILS = {'on_failure="skip"': 'on_failure="fail"'}  # the third record is not an event


def test_a_consumer_that_is_well(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """The events are handled, the health is 200, and SIGTERM ends server and consumer without an error."""
    with serving(tmp_path, kafka_broker) as server:
        server.wait_for("/shipped", ["1", "2"])
        found = server.wait_for("/health", 200)
        assert found["in_work"] == 0
        assert server.end() in {0, -signal.SIGTERM}
        assert "Traceback" not in server.text
        assert "Application shutdown complete" in server.text


@pytest.mark.release
def test_a_consumer_that_has_ended(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """The server goes on with 200, its health answers 503, and the log has the error at once."""
    with serving(tmp_path, kafka_broker, **FAILS) as server:
        found = server.wait_for("/health", 503)
        assert found == {"detail": "the consumer has ended"}
        assert server.ask("/shipped") == (200, ["1", "2"])
        assert "NotAnEvent" in server.text
        assert server.end() in {0, -signal.SIGTERM}


@pytest.mark.release  # `test_a_consumer_that_is_well` starts the page, too
def test_a_consumer_that_hangs(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """A handler that does not return is a 503 when its record is in work for longer than the bound."""
    hang = {
        "shipped.append(item.event.id)": "await asyncio.sleep(3600)",
        "seconds_in_work > 300": "seconds_in_work > 1",
    }
    with serving(tmp_path, kafka_broker, **hang) as server:
        found = server.wait_for("/health", 503)
        assert "records_in_work=1" in found["detail"]


@pytest.mark.release
def test_a_process_that_ends_with_its_consumer(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """With SIGTERM in the callback the server stops, as the page says."""
    ends = {
        'logging.error("the consumer has ended", exc_info=error)': "signal.raise_signal(signal.SIGTERM)",
        "import logging": "import signal",
    }
    with serving(tmp_path, kafka_broker, **FAILS, **ends) as server:
        assert server.process.wait(HANG) in {0, -signal.SIGTERM}
        assert "Application shutdown complete" in server.text
