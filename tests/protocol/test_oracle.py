"""Apache's Java clients encode and decode every message in every version like this library.

The Java clients are those of 3.9.1, which have each version from 0 on, and those of
4.4.0 for later versions.
"""

from __future__ import annotations

import base64
import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.jvm import find_java, resolve
from cloudevents_kafka.protocol import varint
from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.layout import Layout, layout_of
from cloudevents_kafka.protocol.schema import Structure, fields_of
from tests.protocol.generated import bulk, versions_of

from .apache import MESSAGES, NEWEST, OLDEST
from .apache import versions_of as their_versions

pytestmark = pytest.mark.legacy


class Oracle:
    """A Java process that writes a line for each line."""

    def __init__(self, release: str) -> None:
        jars = resolve(
            [
                f"org.apache.kafka:kafka-clients:{release}",
                "com.fasterxml.jackson.core:jackson-databind:2.16.2",
            ]
        )
        java = find_java()
        assert "jdk.compiler" in java.modules, f"{java.home} cannot compile: install a JDK, not only a JRE"
        source = Path(__file__).parent / "oracle" / "Oracle.java"
        path = ":".join(map(str, jars))
        flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m"]
        self.process = subprocess.Popen(
            [str(java.executable), *flags, "-cp", path, str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, *words: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        assert answer, "Java has exited; see its standard error"
        return answer.rstrip("\n")

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(timeout=20) == 0


@pytest.fixture(scope="module")
def oracles() -> Iterator[dict[str, Oracle]]:
    started = {release: Oracle(release) for release in (OLDEST, NEWEST)}
    yield started
    for oracle in started.values():
        oracle.close()


def as_json(layout: Layout, message: Structure) -> dict[str, Any]:
    """Return a message in Apache's JSON."""
    found = {}
    for field in (*layout.fields, *layout.tagged.values()):
        head, *rest = field.name.split("_")
        found[head + "".join(word.title() for word in rest)] = plain(
            field.codec, getattr(message, field.name)
        )
    return found


def plain(codec: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [plain(codec.element, one) for one in value]
    if isinstance(value, Structure):
        return as_json(codec, value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return value


def without_unknown(message: Any) -> None:
    """Remove undeclared tagged fields, which JSON cannot have."""
    message.unknown_tags = ()
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Structure):
                without_unknown(inner)


@pytest.mark.parametrize("structure", MESSAGES, ids=lambda structure: structure.__name__)
def test_messages(oracles, structure):
    """Apache encodes the same values to the same bytes, and again after it decoded them."""
    for version in versions_of(structure):
        oracle = oracles[OLDEST if version in their_versions(OLDEST, structure) else NEWEST]
        for message in bulk(structure, version, count=12):
            ours = compiler.encode(message, version).hex() or "-"
            assert oracle.ask("again", structure.__name__, str(version), ours) == ours
            without_unknown(message)
            given = json.dumps(as_json(layout_of(structure, version), message))
            theirs = oracle.ask("encode", structure.__name__, str(version), given)
            assert (compiler.encode(message, version).hex() or "-") == theirs, given
            data = bytes.fromhex(theirs.replace("-", ""))
            assert compiler.decode(structure, version, data) == (message, len(data))


@pytest.mark.parametrize("size", [0, 7, 31, 32, 63, 64])
def test_varints(oracles, size):
    """Apache's variable-length integers equal ours around all powers of two."""
    for base in range(size, 64, 8):
        for number in {(1 << base) // 2 + off for off in (-1, 0, 1)}:
            for value in (number, -number):
                if -(1 << 63) <= value < 1 << 63:
                    assert oracles[OLDEST].ask("varlong", str(value)) == varint.encode_signed(value, 64).hex()
                if -(1 << 31) <= value < 1 << 31:
                    assert oracles[OLDEST].ask("varint", str(value)) == varint.encode_signed(value).hex()
                    assert oracles[OLDEST].ask("unsigned", str(value)) == varint.encode_unsigned(value).hex()


def test_errors(oracles):
    """`ErrorCode` has each error code of the newest clients, with name and retriability."""
    rows = [row.split(",") for row in oracles[NEWEST].ask("errors").split()]
    theirs = {int(code): (name, again == "true") for code, name, again in rows}
    assert {code: (code.name, code.retriable) for code in ErrorCode} == theirs
