"""Coordinates are bounded by a pattern, as they become names of files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.jvm.coordinates import Coordinate, check_exclusion


def test_parts():
    """A coordinate is read, written, and found in a repository."""
    kafka = Coordinate.parse("org.apache.kafka:kafka_2.13:4.3.1")
    assert (kafka.group, kafka.artifact, kafka.version) == ("org.apache.kafka", "kafka_2.13", "4.3.1")
    assert str(kafka) == "org.apache.kafka:kafka_2.13:4.3.1"
    assert kafka.path == "org/apache/kafka/kafka_2.13/4.3.1/kafka_2.13-4.3.1.jar"
    native = Coordinate("io.netty", "epoll", "4.1.0+b-1", "linux-x86_64", "zip")
    assert native.file_name == "epoll-4.1.0+b-1-linux-x86_64.zip"
    assert str(native) == "io.netty:epoll:4.1.0+b-1:linux-x86_64@zip"


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


@pytest.mark.parametrize("text", BAD)
def test_not_a_coordinate(text):
    """What is not three plain names is refused, with the rule."""
    with pytest.raises(ValueError, match="write group:artifact:version"):
        Coordinate.parse(text)


@pytest.mark.parametrize(("classifier", "extension"), [("../x", "jar"), ("x", "j/r"), ("x", ""), ("x", "..")])
def test_bad_files(classifier, extension):
    """Classifier and extension are bounded too."""
    with pytest.raises(ValueError, match="not a Maven coordinate"):
        Coordinate("g", "a", "1", classifier, extension)


@given(st.text(), st.text(), st.text(), st.text())
def test_paths_stay_below(group, artifact, version, classifier):
    """No coordinate leads out of its folder, whatever its parts."""
    try:
        coordinate = Coordinate(group, artifact, version, classifier)
    except ValueError:
        return
    parts = coordinate.path.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert "/" not in coordinate.file_name
    assert len(coordinate.file_name) < 310


@pytest.mark.parametrize("text", ["a", "a:b:c", "../a:b", "a:", ":b", "a:*"])
def test_not_an_exclusion(text):
    """An exclusion has two names."""
    with pytest.raises(ValueError, match="write group:artifact"):
        check_exclusion(text)
    assert check_exclusion("a.b:c-d") == "a.b:c-d"
