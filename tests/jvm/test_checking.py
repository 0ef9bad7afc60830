"""What was fetched is a whole zip archive with the right checksum, or it is refused by what it is."""

from __future__ import annotations

import hashlib
import io
import zipfile

import pytest
from jvm.repository import jar

from cloudevents_kafka.jvm.checking import BadFile, check_jar
from cloudevents_kafka.jvm.sums import ALGORITHMS, Sum


def sum_of(content: bytes, algorithm: str = "sha256") -> Sum:
    return Sum(algorithm, hashlib.new(algorithm, content).hexdigest(), "repository")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_good(tmp_path, algorithm):
    """A jar with the right sum, by whichever algorithm, is taken."""
    (tmp_path / "a.jar").write_bytes(jar())
    check_jar(tmp_path / "a.jar", sum_of(jar(), algorithm))


def _empty_zip() -> bytes:
    held = io.BytesIO()
    zipfile.ZipFile(held, "w").close()
    return held.getvalue()


BAD = {
    "empty": (b"", r"is empty \(0 bytes\)"),
    "page": (b"\n <!DOCTYPE html><html>Log in</html>", r"is an HTML page \(36 bytes\).*a login answered"),
    "page too": (b"\xef\xbb\xbf<HTML>", "is an HTML page"),
    "text": (b"Not found", "is not a whole zip archive"),
    "cut": (jar("long" * 100)[:-30], "is not a whole zip archive"),
    "begins as one": (b"PK\x03\x04", "is not a whole zip archive"),
    "nothing in it": (_empty_zip(), "without any entry"),
}


@pytest.mark.parametrize("case", BAD)
def test_not_a_jar(tmp_path, case):
    """What is not a jar is refused for that, though its sum be right."""
    content, reason = BAD[case]
    (tmp_path / "a.jar").write_bytes(content)
    with pytest.raises(BadFile, match=reason):
        check_jar(tmp_path / "a.jar", sum_of(content))


def test_another_sum(tmp_path):
    """A jar that is another one is refused, with both sums, and with whose word it is."""
    (tmp_path / "a.jar").write_bytes(jar("changed"))
    other = sum_of(jar())
    with pytest.raises(
        BadFile, match=f"has the SHA-256 [0-9a-f]{{64}}, and the repository says {other.digest}"
    ):
        check_jar(tmp_path / "a.jar", other)
