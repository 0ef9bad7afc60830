"""The errors that pass by themselves, and those that do not."""

from __future__ import annotations

import errno
import http.client
import http.server
import io
import socket
import threading
import urllib.error
from collections.abc import Callable
from email.message import Message
from types import SimpleNamespace

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.error import SchemaRegistryError

from cloudevents_kafka import DataError, Event, Record
from cloudevents_kafka.clients.passing import describe_cause, find_passing
from cloudevents_kafka.clients.serdes import data_reader
from tests.support.cases import each


@each(
    "error",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        socket.gaierror(socket.EAI_AGAIN, "no such name"),
        OSError(errno.EHOSTUNREACH, "no route"),
        urllib.error.URLError("no route"),
        http.client.IncompleteRead(b""),
    ],
    ids=repr,
)
def test_connections_and_timeouts_pass(error: Exception) -> None:
    """Those of Python are known by their classes."""
    assert find_passing(error) is error


@each(
    ("module", "name"),
    [
        ("requests", "ConnectionError"),
        ("requests", "ReadTimeout"),
        ("urllib3.exceptions", "ProtocolError"),
        ("httpx2", "ConnectError"),
        ("httpx2", "ReadTimeout"),
    ],
)
def test_connections_and_timeouts_of_http_clients_pass(module: str, name: str) -> None:
    """They are known by name, as the clients are not imported for that."""
    kind = getattr(pytest.importorskip(module), name)
    assert find_passing(kind("no"))


class Answered(Exception):
    """An error with an answer, as those of httpx and requests."""

    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)


def answer_of_urllib(status: int) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("http://registry", status, "no", Message(), io.BytesIO())


@each("error_of", [lambda status: SchemaRegistryError(status, -1, "no"), Answered, answer_of_urllib])
def test_an_http_answer_passes_by_its_status(error_of: Callable[[int], Exception]) -> None:
    """429 and 5xx say that a later request may succeed; others do not."""
    statuses = (400, 401, 404, 409, 422, 429, 500, 503, 599)
    assert [each for each in statuses if find_passing(error_of(each))] == [429, 500, 503, 599]


@pytest.mark.parametrize("is_up", [False, True])
def test_a_registry_that_is_away_passes(*, is_up: bool) -> None:
    """Its client cannot connect, or the server answers 503."""
    with http.server.HTTPServer(("127.0.0.1", 0), Unavailable, bind_and_activate=False) as server:
        server.server_bind()  # no other program takes the port
        if is_up:
            server.server_activate()
            threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        client = SchemaRegistryClient({"url": url, "max.retries": 0})
        read = data_reader(AvroDeserializer(client))
        event = Event(id="1", source="/s", type="t", data=b"\0\0\0\0\7data")
        with pytest.raises(DataError) as caught:
            _ = event.read_with(lambda event: read(event, Record(topic="orders"))).data
    assert find_passing(caught.value) is not None
    assert ("503" if is_up else "refused") in describe_cause(caught.value)


class Unavailable(http.server.BaseHTTPRequestHandler):
    """Answers that the server is not available."""

    def do_GET(self) -> None:
        """Answer a request."""
        self.send_error(503)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@each("error", [ValueError("no"), FileNotFoundError(errno.ENOENT, "no"), DataError("no")])
def test_others_do_not_pass(error: Exception) -> None:
    """Another try has the same error."""
    assert find_passing(error) is None


def test_what_an_error_comes_from_is_looked_through() -> None:
    """A cause counts, and an error that was handled then; chains may have circles."""
    refused, data = ConnectionRefusedError("refused"), DataError("no")
    data.__cause__ = KeyError("id")
    data.__cause__.__context__ = refused
    refused.__context__ = data
    assert find_passing(data) is refused
    assert describe_cause(data) == "ConnectionRefusedError: refused"
    assert describe_cause(refused) == ""
    assert describe_cause(ValueError("no")) == ""


def test_a_described_cause_is_short_and_has_no_secrets() -> None:
    """A dead letter is read by others."""
    data = DataError("no")
    data.__cause__ = TimeoutError("https://me:secret@registry/schemas " + "x" * 1_000_000)
    text = describe_cause(data)
    assert text.startswith("TimeoutError: https://********@registry/schemas xxx")
    assert len(text) < 400
