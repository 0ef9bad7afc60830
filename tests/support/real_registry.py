"""A real schema registry, Apicurio's, on 127.0.0.1: for tests before a release.

As a program it prints the home folder of a Java that can run it, or exits with status 1.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Final, Self

from cloudevents_kafka.jvm import building, cache_folder, locked
from cloudevents_kafka.jvm._java import _homes
from cloudevents_kafka.jvm._repository import find_repository
from cloudevents_kafka.testing.local import Process, free_ports

OLDEST_JAVA: Final = 21
_VERSION: Final = "3.3.3"
_ARTIFACT: Final = "apicurio-registry-app"
_FILE: Final = f"io/apicurio/{_ARTIFACT}/{_VERSION}/{_ARTIFACT}-{_VERSION}-all.tar.gz"
_SHA256: Final = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
_LIMIT: Final = 1 << 29  # bytes
_SECONDS: Final = 300.0  # until it answers, on a busy machine
_HOST: Final = "127.0.0.1"


def find_newer_java() -> Path | None:
    """Return the home of a Java of version 21 or later, or None."""
    for _, home in _homes():
        release = home / "release"
        text = release.read_text("utf-8") if release.exists() else ""
        found = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
        if found and int(found[1]) >= OLDEST_JAVA:
            return home
    return None


class RealRegistry:
    """A registry without schemas; ``url`` is its API for Confluent's clients."""

    def __init__(self, home: Path) -> None:
        """Start it by a Java of version 21 or later; it ends with this process at the latest."""
        port, management = free_ports(2)
        self.url = f"http://{_HOST}:{port}/apis/ccompat/v7"
        folder = Path(tempfile.mkdtemp(prefix="cloudevents-kafka-registry-"))
        where = (("http", port), ("management", management))
        settings = [
            f"-Dquarkus.{kind}.{name}"
            for kind, number in where
            for name in (f"host={_HOST}", f"port={number}")
        ]
        argv = [
            str(home / "bin" / "java"),
            "-Xmx512m",
            *settings,
            "-jar",
            str(_unpacked() / "quarkus-run.jar"),
        ]
        self._process = Process(argv, log=folder / "registry.log", remove=folder)
        try:
            self._process.wait_until(self._answers, _SECONDS)
        except BaseException:
            self.close()
            raise

    def _answers(self) -> bool:
        time.sleep(0.2)
        try:
            return self.ask("/subjects") == []
        except OSError:
            return False

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the answer to a GET, or to a POST of JSON."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return json.load(answer)

    def close(self) -> None:
        """End it, and remove its folder."""
        self._process.terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _unpacked() -> Path:
    """Return the folder of the program, which is fetched once into the cache."""
    folder = cache_folder() / "registry" / f"{_ARTIFACT}-{_VERSION}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        if not folder.exists():
            with building(folder) as scratch, tempfile.TemporaryFile() as file:
                find_repository().copy(_FILE, file, limit=_LIMIT)
                file.seek(0)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                if digest != _SHA256:
                    raise ValueError(f"the SHA-256 of {_FILE} must be {_SHA256}, got {digest}")
                file.seek(0)
                with tarfile.open(fileobj=file, mode="r:gz") as archive:
                    archive.extractall(scratch, filter="data")
    return folder


if __name__ == "__main__":
    if (java := find_newer_java()) is None:
        sys.exit(f"Java {OLDEST_JAVA}")
    sys.stdout.write(f"{java}\n")
