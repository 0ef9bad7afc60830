"""A downloaded jar is a complete zip archive with the right checksum, or it is refused with the reason."""

from __future__ import annotations

import hashlib
import io
import zipfile

import pytest
from jvm.repository import THING, jar

from cloudevents_kafka.jvm._checksums import (
    ALGORITHMS,
    BadJar,
    Checksum,
    check_jar,
    find_checksum,
    published_digest,
)
from cloudevents_kafka.jvm._web import Repository

DIGESTS = {name: hashlib.new(name, b"x").hexdigest() for name in ALGORITHMS}


def checksum_of(content: bytes, algorithm: str = "sha256") -> Checksum:
    return Checksum(algorithm, hashlib.new(algorithm, content).hexdigest(), "repository")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_good(tmp_path, algorithm):
    """A jar with the right checksum, by any algorithm, passes."""
    (tmp_path / "a.jar").write_bytes(jar())
    check_jar(tmp_path / "a.jar", checksum_of(jar(), algorithm))


def _empty_zip() -> bytes:
    buffer = io.BytesIO()
    zipfile.ZipFile(buffer, "w").close()
    return buffer.getvalue()


BAD = {
    "empty": (b"", r"is not a complete zip archive \(0 bytes"),
    "page": (
        b"\n <!DOCTYPE html><html>Log in</html>",
        r"is an HTML page \(36 bytes\).*a login page",
    ),
    "page with a byte order mark": (b"\xef\xbb\xbf<HTML>", "is an HTML page"),
    "text": (b"Not found", "is not a complete zip archive"),
    "truncated": (jar("long" * 100)[:-30], "is not a complete zip archive"),
    "first bytes only": (b"PK\x03\x04", "is not a complete zip archive"),
    "no entry": (_empty_zip(), "is a zip archive without entries"),
}


@pytest.mark.parametrize("case", BAD)
def test_not_a_jar(tmp_path, case):
    """A file that is not a jar is refused even if its checksum is right."""
    content, reason = BAD[case]
    (tmp_path / "a.jar").write_bytes(content)
    with pytest.raises(BadJar, match=reason):
        check_jar(tmp_path / "a.jar", checksum_of(content))


def test_another_checksum(tmp_path):
    """A jar with another checksum is refused; the error has both, and the origin of the expected one."""
    (tmp_path / "a.jar").write_bytes(jar("changed"))
    expected = checksum_of(jar())
    reason = f"SHA-256 must be {expected.digest}, as in the repository, got [0-9a-f]{{64}}"
    with pytest.raises(BadJar, match=reason):
        check_jar(tmp_path / "a.jar", expected)


@pytest.mark.parametrize("published", [("sha1",), ("sha1", "sha256"), ("sha1", "sha256", "sha512")])
def test_the_strongest(mirror, published):
    """The strongest published checksum counts."""
    for name in published:
        mirror.put(f"{THING.path}.{name}", DIGESTS[name].encode())
    expected = Checksum(published[-1], DIGESTS[published[-1]], "repository")
    assert find_checksum(THING, Repository(mirror.url)) == expected


FORMS = ["{}", "{}\n", "{}  thing-1.0.jar\n", "SHA1 (thing-1.0.jar) = {}", "\ufeff{} *thing-1.0.jar"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("upper", [False, True])
def test_forms(mirror, form, upper):
    """Digests are read in the forms in which repositories publish them."""
    digest = DIGESTS["sha1"]
    mirror.put("x.sha1", form.format(digest.upper() if upper else digest).encode())
    assert published_digest(Repository(mirror.url), "x", "sha1") == digest
    assert published_digest(Repository(mirror.url), "y", "sha1") is None


@pytest.mark.parametrize(
    "text", ["", "<html>404</html>", "0123", "0" * 39, DIGESTS["sha256"], "a" * 40 + " " + "b" * 40]
)
def test_no_digest(mirror, text):
    """A text without exactly one digest of the right length is an error, and not a missing checksum."""
    mirror.put("x.sha1", text.encode())
    with pytest.raises(BadJar, match=r"its \.sha1 file must have one checksum, got [02]"):
        published_digest(Repository(mirror.url), "x", "sha1")
