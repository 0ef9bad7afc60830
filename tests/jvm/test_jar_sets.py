"""The named sets list the jars of everything that the package offers by version."""

from __future__ import annotations

import hashlib
import re
import sys

import pytest

from cloudevents_kafka.jvm import NoJars, PlainHttp, _checksums, _jars, resolve
from cloudevents_kafka.jvm._coordinates import JarRequest, jar_sets, pinned_checksums
from cloudevents_kafka.testing.local import KAFKA_VERSION, kafka_coordinates
from tests.support.maven_repository import THING, jar
from tests.support.pin_jars import REQUESTS


def test_offered():
    """Each version of Kafka, of its old brokers, of the connector, of Delta and of Iceberg has a set."""
    assert jar_sets().keys() == set(REQUESTS.values())
    assert JarRequest.create(kafka_coordinates(KAFKA_VERSION)) in jar_sets()
    for request, jars in jar_sets().items():
        assert {*request.coordinates} <= {str(coordinate) for coordinate in jars}


def test_checksums():
    """Each jar has a SHA-256, the same in all sets; within a set, file names differ."""
    for jars in jar_sets().values():
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in jars.values())
        assert all(pinned_checksums()[coordinate] == digest for coordinate, digest in jars.items())
        assert len({coordinate.file_name for coordinate in jars}) == len(jars)


@pytest.mark.filterwarnings("ignore::cloudevents_kafka.jvm.PlainHttp")
def test_fetched_from_the_list(mirror, monkeypatch):
    """A named set is downloaded without reading a POM file or a checksum file, and without jgo."""
    monkeypatch.setitem(sys.modules, "jgo", None)
    _list(monkeypatch, hashlib.sha256(mirror.add()).hexdigest())
    (path,) = resolve([str(THING)])
    assert path.read_bytes() == jar()
    assert mirror.requests == [f"/repo/{THING.path}"]


def test_the_list_wins(mirror, monkeypatch):
    """A jar with another checksum than the list is refused, even if the repository publishes its checksum."""
    mirror.add(content=jar("changed"), algorithms=("sha512", "sha256", "sha1"))
    _list(monkeypatch, "0" * 64)
    with pytest.warns(PlainHttp), pytest.raises(NoJars, match=r"must be 0{64}, as in the package"):
        resolve([str(THING)])


def _list(monkeypatch, digest):
    """Make the package list one jar."""
    monkeypatch.setattr(_jars, "jar_sets", lambda: {JarRequest((str(THING),)): {THING: digest}})
    for module in (_jars, _checksums):
        monkeypatch.setattr(module, "pinned_checksums", lambda: {THING: digest})
