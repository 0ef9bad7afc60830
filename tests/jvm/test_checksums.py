"""A downloaded jar is a complete zip archive with the right checksum, or it is refused with the reason."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile

import pytest

from cloudevents_kafka.jvm import NoJars, resolve
from cloudevents_kafka.jvm._checksums import ALGORITHMS
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE
from tests.support.maven_repository import NEEDED, THING, failure, jar

pytestmark = pytest.mark.filterwarnings("ignore::cloudevents_kafka.jvm.PlainHttp")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_published_checksums(mirror, algorithm):
    """A jar is compared with any checksum that the repository publishes, and refused if it differs."""
    content = mirror.add(algorithms=(algorithm,))
    (path,) = resolve([str(THING)])
    assert path.read_bytes() == content
    path.unlink()
    mirror.put(THING.path, jar("changed"))
    expected = hashlib.new(algorithm, content).hexdigest()
    name = algorithm.replace("sha", "SHA-")
    with pytest.raises(NoJars, match=f"{name} must be {expected}, as in the repository, got [0-9a-f]+: the"):
        resolve([str(THING)])


@pytest.mark.parametrize("published", [("sha256", "sha1"), ("sha512", "sha1"), ("sha512", "sha256")])
def test_the_strongest(mirror, published):
    """The strongest published checksum counts."""
    mirror.add(algorithms=published[:1])
    mirror.put(f"{THING.path}.{published[1]}", hashlib.new(published[1], b"other").hexdigest().encode())
    assert len(resolve([str(THING)])) == 1


FORMS = ["{}", "{}\n", "{}  thing-1.0.jar\n", "SHA1 (thing-1.0.jar) = {}", "\ufeff{} *thing-1.0.jar"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("upper", [False, True])
def test_forms(mirror, form, upper):
    """Digests are read in the forms in which repositories publish them."""
    digest = hashlib.sha1(mirror.add(algorithms=())).hexdigest()
    mirror.put(f"{THING.path}.sha1", form.format(digest.upper() if upper else digest).encode())
    assert len(resolve([str(THING)])) == 1


@pytest.mark.parametrize(
    "text", ["", "<html>404</html>", "0123", "0" * 39, "0" * 64, "a" * 40 + " " + "b" * 40]
)
def test_no_digest(mirror, text):
    """A text without exactly one digest of the right length is an error, and not a missing checksum."""
    mirror.add()
    mirror.put(f"{THING.path}.sha1", text.encode())
    assert re.search(r"its \.sha1 file must have one checksum, got [02]", failure())


def test_no_checksum(mirror):
    """A jar without a checksum is refused; MD5 does not count."""
    mirror.add(algorithms=("md5",))
    text = failure()
    assert "has no checksum of org.example:thing:1.0: no .sha512, .sha256 or .sha1 file" in text
    assert MIRROR_VARIABLE in text


def test_dependencies_are_checked(mirror):
    """A dependency without a checksum is refused too."""
    mirror.add(dependencies=(NEEDED,))
    mirror.add(NEEDED, algorithms=())
    assert "has no checksum of org.example:needed:2.0" in failure()


def _empty_zip() -> bytes:
    buffer = io.BytesIO()
    zipfile.ZipFile(buffer, "w").close()
    return buffer.getvalue()


BAD = {
    "empty": (b"", "is not a complete zip archive (0 bytes"),
    "page": (b"\n <!DOCTYPE html><html>Log in</html>", "is an HTML page (36 bytes): a proxy or a login page"),
    "page with a byte order mark": (b"\xef\xbb\xbf<HTML>", "is an HTML page"),
    "text": (b"Not found", "is not a complete zip archive"),
    "truncated": (jar("long" * 100)[:-30], "is not a complete zip archive"),
    "first bytes only": (b"PK\x03\x04", "is not a complete zip archive"),
    "no entry": (_empty_zip(), "is a zip archive without entries"),
}


@pytest.mark.parametrize("case", BAD)
def test_not_a_jar(mirror, case):
    """A file that is not a jar is refused even if its checksum is right."""
    content, reason = BAD[case]
    mirror.add(content=content)
    assert reason in failure()
