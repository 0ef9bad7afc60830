"""A Maven repository on 127.0.0.1 that can be set to fail, and what a failed download leaves."""

from __future__ import annotations

import hashlib
import io
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cloudevents_kafka.jvm import NoJars, cache_folder, resolve
from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest, jar_sets

THING = Coordinate("org.example", "thing", "1.0")
NEEDED = Coordinate("org.example", "needed", "2.0")


def jar(text: str = "x") -> bytes:
    """Return a jar with one entry."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("entry"), text)  # a fixed date, so that all jars are equal
    return buffer.getvalue()


def pom(coordinate: Coordinate, *dependencies: Coordinate | tuple[str, str, str]) -> bytes:
    """Return a POM file."""
    rows = [
        (one.group, one.artifact, one.version) if isinstance(one, Coordinate) else one for one in dependencies
    ]
    listed = "".join(f"<dependency>{_names(*row)}</dependency>" for row in rows)
    names = _names(coordinate.group, coordinate.artifact, coordinate.version)
    return (
        f"<project><modelVersion>4.0.0</modelVersion>{names}<dependencies>{listed}</dependencies></project>"
    ).encode()


def _names(group: str, artifact: str, version: str) -> str:
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"


def entries() -> list[str]:
    """Return the names in the jar cache without those of locks."""
    folder = cache_folder() / "jars"
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock") if folder.exists() else []


def named_set(coordinates: tuple[str, ...]) -> dict[str, bytes]:
    """Return the jars of a named set, from the cache, by their paths in a repository."""
    paths = {path.name: path for path in resolve(coordinates)}
    jars = jar_sets()[JarRequest.create(coordinates)]
    return {one.path: paths[one.file_name].read_bytes() for one in jars}


def failure(*coordinates: str) -> str:
    """Resolve coordinates that fail; return the text of the error."""
    with pytest.raises(NoJars) as caught:
        resolve(coordinates or [str(THING)])
    assert entries() == []
    error: BaseException | None = caught.value
    text = str(error)
    while error is not None:
        assert "hunter2" not in f"{error!r} {error}"
        error = error.__cause__
    return text


class Repository:
    """Files by path, and settings for what goes wrong."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.files: dict[str, bytes] = {}
        self.statuses: dict[str, int] = {}
        self.headers: dict[str, str] = {}
        self.authorization: str | None = None
        self.missing_bytes = 0
        self.delay = 0.0
        self.requests: list[str] = []
        self.authorizations: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/repo"

    def add(
        self,
        coordinate: Coordinate = THING,
        content: bytes | None = None,
        *,
        dependencies: tuple[Coordinate, ...] = (),
        algorithms: tuple[str, ...] = ("sha1",),
    ) -> bytes:
        """Add a jar with its POM file and its checksums by these algorithms."""
        added = jar() if content is None else content
        self.put(coordinate.path, added)
        self.put(coordinate.pom_path, pom(coordinate, *dependencies))
        for algorithm in algorithms:
            self.put(f"{coordinate.path}.{algorithm}", hashlib.new(algorithm, added).hexdigest().encode())
        return added

    def put(self, path: str, content: bytes) -> None:
        self.files[f"/repo/{path}"] = content

    def count(self, path: str) -> int:
        """Return how often a path was requested."""
        return self.requests.count(f"/repo/{path}")

    def answer(self, path: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.requests.append(path)
        time.sleep(self.delay)
        if (sent := headers.get("Authorization")) is not None:
            self.authorizations.append(sent)
        if self.authorization is not None and sent != self.authorization:
            return 401, {"WWW-Authenticate": "Basic realm=\"the 'jars'\""}, b""
        status = self.statuses.get(path, self.statuses.get("*", 200 if path in self.files else 404))
        return status, self.headers, self.files.get(path, b"") if status == 200 else b"no"


@contextmanager
def serving() -> Iterator[Repository]:
    """Yield a repository that a server in a thread answers from."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = repository.answer(self.path, dict(self.headers))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - repository.missing_bytes])

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        repository = Repository(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield repository
        finally:
            server.shutdown()
            thread.join()
