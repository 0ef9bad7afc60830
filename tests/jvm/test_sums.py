"""Each jar has a checksum: the package's own, else the strongest that its repository publishes."""

from __future__ import annotations

import hashlib
import re

import pytest

from cloudevents_kafka.jvm import sums
from cloudevents_kafka.jvm.coordinates import Coordinate
from cloudevents_kafka.testing.local.old_brokers import RELEASES
from cloudevents_kafka.testing.local.prepared import KAFKA_VERSION, coordinates

THING = Coordinate("org.example", "thing", "1.0")
DIGESTS = {name: hashlib.new(name, b"x").hexdigest() for name in sums.ALGORITHMS}


def test_what_the_package_knows():
    """The package has the SHA-256 of Kafka, of the brokers of old, and of the connector, each a line."""
    known = sums.pinned()
    wanted = [
        *coordinates(KAFKA_VERSION),
        *coordinates("3.9.1"),
        *(text for release in RELEASES.values() for text in release.coordinates),
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    ]
    assert set(wanted) <= known.keys()
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known.values())
    assert all(str(Coordinate(*text.split(":"))) == text for text in known)


def test_the_package_wins():
    """What the package knows is not asked of the repository, which may be the one that was changed."""
    kafka = Coordinate.parse(coordinates(KAFKA_VERSION)[0])
    wanted = sums.wanted(kafka, lambda _: pytest.fail("asked"))
    assert wanted == sums.Sum("sha256", sums.pinned()[str(kafka)], "package")


@pytest.mark.parametrize("there", [("sha1",), ("sha1", "sha256"), ("sha1", "sha256", "sha512"), ()])
def test_the_strongest(there):
    """Of the repository's sums the strongest counts; where it has none, there is none."""
    wanted = sums.wanted(THING, lambda name: DIGESTS[name] if name in there else None)
    assert wanted == (sums.Sum(there[-1], DIGESTS[there[-1]], "repository") if there else None)


FORMS = ["{}", "{}\n", "{}  thing-1.0.jar\n", "SHA1 (thing-1.0.jar) = {}", "\ufeff{} *thing-1.0.jar"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("upper", [False, True])
def test_forms(form, upper):
    """Digests are read in the forms in which they are published."""
    digest = DIGESTS["sha1"]
    assert sums.parse(form.format(digest.upper() if upper else digest), "sha1") == digest


@pytest.mark.parametrize(
    "text", ["", "<html>404</html>", "0123", DIGESTS["sha256"], "a" * 40 + " " + "b" * 40]
)
def test_no_digest(text):
    """A text without one digest of the right length is refused: it is not taken for a missing one."""
    with pytest.raises(ValueError, match=r"its \.sha1 file has [02] checksums; it must have one"):
        sums.parse(text, "sha1")
