"""Dependencies are resolved by Maven's rules, from POM files that may be hostile."""

from __future__ import annotations

import hashlib
import time

import pytest

from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest
from cloudevents_kafka.jvm._progress import Progress
from cloudevents_kafka.jvm._web import FetchFailed, Repository
from tests.support.maven_repository import NEEDED, THING, pom

_resolver = pytest.importorskip("cloudevents_kafka.jvm._resolver", exc_type=ImportError)
PARENT = Coordinate("org.example", "parent", "1")
HEAD = "<groupId>org.example</groupId><artifactId>thing</artifactId><version>1.0</version>"


def resolve(mirror):
    found = _resolver.resolve_request(JarRequest((str(THING),)), Repository(mirror.url), Progress())
    return [str(coordinate) for coordinate in found]


def dependency(artifact: str, more: str = "", version: str = "<version>1</version>") -> str:
    names = f"<groupId>org.example</groupId><artifactId>{artifact}</artifactId>{version}"
    return f"<dependency>{names}{more}</dependency>"


def project(*parts: str) -> bytes:
    return f"<project>{HEAD}{''.join(parts)}</project>".encode()


def put_pom(mirror, artifact: str, *dependencies: Coordinate, version: str = "1") -> Coordinate:
    coordinate = Coordinate("org.example", artifact, version)
    mirror.put(coordinate.pom_path, pom(coordinate, *dependencies))
    return coordinate


def test_scopes(mirror):
    """Only dependencies of the scopes compile and runtime that are not optional are included."""
    for artifact in "abcde":
        put_pom(mirror, artifact)
    rows = [
        dependency("a"),
        dependency("b", "<scope>runtime</scope>"),
        dependency("c", "<scope>test</scope>"),
        dependency("d", "<scope>provided</scope>"),
        dependency("e", "<optional>true</optional>"),
    ]
    mirror.put(THING.pom_path, project("<dependencies>", *rows, "</dependencies>"))
    assert resolve(mirror) == ["org.example:a:1", "org.example:b:1", str(THING)]


def test_nearest_wins(mirror):
    """Of two versions of a dependency the nearer one is included, as in Maven."""
    far = put_pom(mirror, "needed", version="3.0")
    between = put_pom(mirror, "between", far)
    near = put_pom(mirror, "needed", version="2.0")
    mirror.put(THING.pom_path, pom(THING, between, near))
    assert resolve(mirror) == [str(between), str(near), str(THING)]


def test_parent(mirror):
    """The version of a dependency may be managed by the parent, with a property."""
    put_pom(mirror, "needed", version="2.0")
    managed = dependency("needed", version="<version>${v}</version>")
    names = "<groupId>org.example</groupId><artifactId>parent</artifactId><version>1</version>"
    properties = "<properties><v>2.0</v></properties>"
    management = f"<dependencyManagement><dependencies>{managed}</dependencies></dependencyManagement>"
    mirror.put(PARENT.pom_path, f"<project>{names}{properties}{management}</project>".encode())
    child = f"<parent>{names}</parent><dependencies>{dependency('needed', version='')}</dependencies>"
    mirror.put(THING.pom_path, project(child))
    assert resolve(mirror) == [str(NEEDED), str(THING)]


def test_classifier(mirror):
    """A dependency may have a classifier."""
    put_pom(mirror, "native")
    row = dependency("native", "<classifier>linux</classifier>")
    mirror.put(THING.pom_path, project("<dependencies>", row, "</dependencies>"))
    assert resolve(mirror) == ["org.example:native:1:linux", str(THING)]


BAD = {
    "not XML": (b"<html>Log in", "cannot be resolved"),
    "no version": (
        project("<dependencies>", dependency("a", version=""), "</dependencies>"),
        "cannot be resolved",
    ),
    "a range": (
        project("<dependencies>", dependency("a", version="<version>[1,2)</version>"), "</dependencies>"),
        r"a Maven coordinate must be .*, got 'org.example:a:\[1,2\)",
    ),
    "the latest version": (
        project("<dependencies>", dependency("a", version="<version>LATEST</version>"), "</dependencies>"),
        "must be fixed",
    ),
    "its own parent": (project(f"<parent>{HEAD}</parent>"), "too many parents"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_pom(mirror, case):
    """A POM file that cannot be used is an error."""
    content, reason = BAD[case]
    mirror.put(THING.pom_path, content)
    with pytest.raises(FetchFailed, match=reason):
        resolve(mirror)


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.release] * (case == "its own parent")) for case in BAD]
)
def test_bad_pom_of_a_dependency(mirror, case):
    """So is that of a dependency, which jgo alone would ignore."""
    mirror.put(THING.pom_path, pom(THING, NEEDED))
    content = BAD[case][0].replace(b"thing", b"needed").replace(b"1.0", b"2.0")
    mirror.put(NEEDED.pom_path, content)
    with pytest.raises(FetchFailed, match=BAD[case][1]):
        resolve(mirror)


def test_checksum_of_a_pom(mirror):
    """A POM file must have the published SHA-1."""
    content = pom(THING)
    mirror.put(THING.pom_path, content)
    mirror.put(f"{THING.pom_path}.sha1", hashlib.sha1(content).hexdigest().encode())
    assert resolve(mirror) == [str(THING)]
    mirror.put(THING.pom_path, pom(THING, NEEDED))
    with pytest.raises(FetchFailed, match=r"the SHA-1 of .* must be"):
        resolve(mirror)


def test_a_long_version(mirror):
    """The work for a POM file with a long version grows with its size, and the error is short."""
    times = []
    for size in (50_000, 200_000):
        version = f"<version>{'a' * size}</version>"
        mirror.put(THING.pom_path, project("<dependencies>", dependency("a", "", version), "</dependencies>"))
        began = time.process_time()
        with pytest.raises(FetchFailed) as caught:
            resolve(mirror)
        times.append(time.process_time() - began)
        assert len(caught.value.reason) < 20_000
    assert times[1] < 6 * times[0] + 0.1
