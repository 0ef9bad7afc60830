"""The client of a registry has settings as text, and no registry holds a program for ever."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka.schema_registry.error import SchemaRegistryError

from cloudevents_kafka.clients.passing import find_passing
from cloudevents_kafka.clients.schema_registry import (
    DEFAULTS,
    NotASchema,
    NotAsked,
    Patience,
    close_client,
    find_schema,
    is_unknown,
    registry_client,
    registry_settings,
    seconds_of,
)
from tests.support.cases import each
from tests.support.registries import slow_registry

URL = {"url": "http://127.0.0.1:1"}
HANGS = 60.0  # seconds that only a hang takes


def test_texts_are_read_as_numbers_and_booleans() -> None:
    """The client accepts the texts of a command line for each setting of another type; other texts stay."""
    texts = {
        "timeout": "2.5",
        "cache.capacity": "10",
        "cache.latest.ttl.sec": "60",
        "max.retries": "0",
        "retries.wait.ms": "1",
        "retries.max.wait.ms": "2",
        "ssl.ca.location": "false",
        "basic.auth.user.info": "1:2",
    }
    numbers = {"timeout": 2.5, "cache.capacity": 10, "cache.latest.ttl.sec": 60, "max.retries": 0}
    numbers |= {"retries.wait.ms": 1, "retries.max.wait.ms": 2}
    read = registry_settings(texts)
    assert read == {**numbers, "ssl.ca.location": False, "basic.auth.user.info": "1:2"}
    assert registry_settings(read) == read
    client = registry_client({**URL, **texts})._rest_client
    assert (client.timeout, client.max_retries, client.retries_wait_ms) == (2.5, 0, 1)
    assert registry_settings({**URL, "timeout": None}) == {**DEFAULTS, **URL}
    assert registry_settings({"ssl.ca.location": "/etc/ca.pem"})["ssl.ca.location"] == "/etc/ca.pem"


@each("value", ["2.5", 0.5, "1e-3"])
def test_a_fraction_is_refused_where_a_count_is_needed(value: Any) -> None:
    """Nothing is cut off; a text such as 2.0 is a whole number."""
    with pytest.raises(ValueError, match=r"max\.retries must be a whole number from 0 to 1000, got "):
        registry_settings({"max.retries": value})
    with pytest.raises(
        ValueError, match=r"cache\.capacity must be a whole number from 1 to 2147483648, got "
    ):
        registry_settings({"cache.capacity": value})
    assert registry_settings({"max.retries": "2.0"})["max.retries"] == 2


@each("value", ["", "x", "-1", "nan", "inf", "1e999", "1e9", True, [], "5s"])
def test_what_is_no_number_is_refused(value: Any) -> None:
    """The error has the setting, the rule and the value."""
    with pytest.raises(ValueError, match=r"^schema\.registry\.timeout must be a number from 0\.001 to 86400"):
        registry_client({**URL, "timeout": value})


@each(
    "settings",
    [{"url": "ftp://r"}, {}, {**URL, "no.such": "1"}, {**URL, "ssl.ca.location": "/no/such/file"}],
    ids=str,
)
def test_wrong_settings_are_a_value_error(settings: dict[str, Any]) -> None:
    """What the client refuses is one kind of error, also what it raises about a file."""
    with pytest.raises(ValueError, match=r"."):
        registry_client(settings)


@pytest.mark.parametrize("drips", [False, True], ids=["silent", "byte by byte"])
def test_a_registry_that_does_not_answer(*, drips: bool) -> None:
    """A registry that accepts and does not answer, or not to the end, is away: a transient error."""
    with slow_registry(drips=drips) as registry:
        settings = {"url": registry.url, "timeout": "0.1", "max.retries": "0"}
        client, began = registry_client(settings), time.monotonic()
        with pytest.raises(Exception) as caught:  # of httpx, or ours
            Patience(seconds_of(settings)).wait_for(lambda: client.get_schema(1))
        assert find_passing(caught.value)
        assert time.monotonic() - began < HANGS
        assert registry.asked.is_set()


@each(
    ("status", "body", "error"),
    [
        *((200, body, NotASchema) for body in (b"<html>log in</html>", b"null", b"[]", b"{}", b"", b'"x"')),
        *((200, body, NotASchema) for body in (b'{"schema":7}', b'{"schema":null}', b"\xff\xfe")),
        (200, b'{"schema":"1","schemaType":5}', NotASchema),
        (200, b'{"schema":"\\"int\\"","references":[{"name":"x"}]}', NotASchema),
        (200, b'{"schema":"\\"int\\"","references":7}', NotASchema),
        (204, b"", NotASchema),
        *((status, b"plain text", SchemaRegistryError) for status in (302, 401, 403, 404, 500)),
        (404, b'{"error_code":404,"message":"no such path"}', SchemaRegistryError),
    ],
)
def test_other_servers_answer_no_schema(status: int, body: bytes, error: type[Exception]) -> None:
    """A page of a proxy, or a wrong path, is never a schema, nor the answer that there is none."""
    with registry_that_answers(lambda _: (status, body)) as client, pytest.raises(error) as caught:
        find_schema(client, "1")
    assert not is_unknown(caught.value, by_guid=False)


def test_a_schema_refers_to_one_that_was_deleted() -> None:
    """It is read, as registries keep what was deleted: topics still have data of such schemas."""
    order = {"schema": '"Part"', "references": [{"name": "Part", "subject": "part", "version": 3}]}
    part = {"schema": '{"type":"enum"}', "subject": "part", "version": 3, "id": 7}
    gone = {"error_code": 40402, "message": "Version 3 not found."}

    def answer(path: str) -> tuple[int, bytes]:
        if path.startswith("/schemas/ids/1"):
            return 200, json.dumps(order).encode()
        was_asked = path.startswith("/subjects/part/versions/3") and "deleted=true" in path.lower()
        return (200, json.dumps(part).encode()) if was_asked else (404, json.dumps(gone).encode())

    with registry_that_answers(answer) as client:
        assert find_schema(client, "1") == ("AVRO", ('{"type":"enum"}', '"Part"'))


def test_a_client_without_close_is_closed() -> None:
    """The oldest supported client is only closed at the end of a with block."""

    class Older(AbstractContextManager[None]):
        is_open = True

        def __exit__(self, *_: object) -> None:
            self.is_open = False

    class Newer(Older):
        def close(self) -> None:
            self.is_open = False

    for client in (Older(), Newer()):
        close_client(client)
        assert not client.is_open


@contextmanager
def registry_that_answers(answer: Callable[[str], tuple[int, bytes]]) -> Iterator[Any]:
    """Yield the client of a server that answers each path with a status and a body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that the server calls
            status, body = answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        settings = {"url": f"http://127.0.0.1:{server.server_port}", "max.retries": 0}
        try:
            with registry_client(settings) as client:
                yield client
        finally:
            server.shutdown()


def test_a_call_has_as_much_time_as_all_its_waits() -> None:
    """The whole limit follows the limit for a wait, and has a default."""
    assert seconds_of({"timeout": "5"}) == 30
    assert seconds_of({}) == 6 * DEFAULTS["timeout"]
    assert not math.isinf(seconds_of({"timeout": 86_400}))


def test_another_thread_ends_the_waiting() -> None:
    """`end` ends a call that hangs, and no later call is made; results and errors come as they are."""
    patience, called, released = Patience(HANGS), threading.Event(), threading.Event()

    def hang() -> bool:
        called.set()
        return released.wait(HANGS)

    assert patience.wait_for(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        patience.wait_for(lambda: 1 // 0)
    with pytest.raises(TimeoutError, match=r"^of the client$"):
        patience.wait_for(lambda: (_ for _ in ()).throw(TimeoutError("of the client")))
    threading.Thread(target=lambda: called.wait(HANGS) and patience.end()).start()
    with pytest.raises(NotAsked):
        patience.wait_for(hang)
    called.clear()
    with pytest.raises(NotAsked):
        patience.wait_for(hang)
    assert not called.is_set()
    released.set()
