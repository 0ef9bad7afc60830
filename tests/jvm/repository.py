"""A Maven repository on 127.0.0.1, which can be made to misbehave."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cloudevents_kafka.jvm.coordinates import Coordinate

THING = Coordinate("org.example", "thing", "1.0")


def jar(text: str = "x") -> bytes:
    """Make a jar with one entry."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr(zipfile.ZipInfo("entry"), text)  # of 1980, so that all are alike
    return held.getvalue()


def pom(coordinate: Coordinate, *needs: tuple[str, str, str]) -> bytes:
    needed = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        "</dependency>"
        for group, artifact, version in needs
    )
    return (
        f"<project><modelVersion>4.0.0</modelVersion><groupId>{coordinate.group}</groupId>"
        f"<artifactId>{coordinate.artifact}</artifactId><version>{coordinate.version}</version>"
        f"<dependencies>{needed}</dependencies></project>"
    ).encode()


class Repository:
    """Files by path; what it asks of a client, and how it answers instead, can be set."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.files: dict[str, bytes] = {}
        self.statuses: dict[str, int] = {}
        self.headers: dict[str, str] = {}
        self.login: str | None = None
        self.cut = 0
        self.asked: list[str] = []
        self.logins: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/repo"

    def add(
        self,
        coordinate: Coordinate = THING,
        content: bytes | None = None,
        *,
        algorithms: tuple[str, ...] = (),
    ) -> bytes:
        """Add a jar with its POM, and its checksums by these algorithms."""
        held = jar() if content is None else content
        self.put(coordinate.path, held)
        self.put(coordinate.path.removesuffix(".jar") + ".pom", pom(coordinate))
        for algorithm in algorithms:
            self.put(f"{coordinate.path}.{algorithm}", hashlib.new(algorithm, held).hexdigest().encode())
        return held

    def put(self, path: str, content: bytes) -> None:
        self.files[f"/repo/{path}"] = content

    def answer(self, path: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        if (sent := headers.get("Authorization")) is not None:
            self.logins.append(sent)
        if self.login is not None and sent != self.login:
            return 401, {"WWW-Authenticate": "Basic realm=\"the 'jars'\""}, b""
        status = self.statuses.get(path, self.statuses.get("*", 200 if path in self.files else 404))
        return status, self.headers, self.files.get(path, b"") if status == 200 else b"no"


@contextmanager
def serving() -> Iterator[Repository]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = repository.answer(self.path, dict(self.headers))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body[: len(body) - repository.cut])

        def do_HEAD(self):
            self.do_GET()

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
