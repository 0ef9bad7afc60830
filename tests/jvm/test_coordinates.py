"""Coordinates match a pattern, as they become names of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest
from tests.support.cases import each


def test_parts():
    """A coordinate is parsed and written, and has its path in a repository."""
    kafka = Coordinate.parse("org.apache.kafka:kafka_2.13:4.3.1")
    assert (kafka.group, kafka.artifact, kafka.version) == ("org.apache.kafka", "kafka_2.13", "4.3.1")
    assert str(kafka) == "org.apache.kafka:kafka_2.13:4.3.1"
    assert kafka.path == "org/apache/kafka/kafka_2.13/4.3.1/kafka_2.13-4.3.1.jar"
    native = Coordinate("io.netty", "epoll", "4.1.0+b-1", "linux-x86_64")
    assert native.file_name == "epoll-4.1.0+b-1-linux-x86_64.jar"
    assert native.pom_path == "io/netty/epoll/4.1.0+b-1/epoll-4.1.0+b-1.pom"
    assert str(native) == "io.netty:epoll:4.1.0+b-1:linux-x86_64"


BAD = [
    "thing",
    "a:b",
    "a:b:c:d",
    "::",
    "a::1",
    "g:../../evil:1",
    "../g:a:1",
    "g:a:../1",
    "g:a:..",
    "g:.a:1",
    "g:a.:1",
    "g/h:a:1",
    "g\\h:a:1",
    "g:a:1\n",
    "g:a:[1,2)",
    "g:a:1.+",
    "g:a:${x}",
    "g:a:1#",
    "g: a:1",
    "g:ä:1",
    "g:a:\0",
    "~:a:1",
    f"g:{'a' * 101}:1",
]


@each("text", BAD)
def test_not_a_coordinate(text):
    """A text that is not three plain names is refused; the error has the rule."""
    with pytest.raises(ValueError, match="must be group:artifact:version"):
        Coordinate.parse(text)


@each("classifier", ["../x", "x/y", ".."])
def test_bad_classifier(classifier):
    """A classifier has rules too."""
    with pytest.raises(ValueError, match="a Maven coordinate must be"):
        Coordinate("g", "a", "1", classifier)


@given(st.text(), st.text(), st.text(), st.text())
def test_paths_stay_below(group, artifact, version, classifier):
    """The path of a coordinate never leads out of its folder."""
    try:
        coordinate = Coordinate(group, artifact, version, classifier)
    except ValueError:
        return
    parts = coordinate.path.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert "/" not in coordinate.file_name
    assert len(coordinate.file_name) < 310


@each("text", ["a", "a:b:c", "../a:b", "a:", ":b", "a:*"])
def test_not_an_exclusion(text):
    """An exclusion has two names."""
    with pytest.raises(ValueError, match="must be group:artifact"):
        JarRequest.create(["g:a:1"], [text])
    assert JarRequest.create(["g:a:1"], ["c:d", "a.b:c-d"]).exclude == ("a.b:c-d", "c:d")
