"""The Java function reads every valid event, but for listed kinds, exactly as `decode` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", minversion="4.0")

from cloudevents_kafka import AttributeType, Record, register_extension, register_format
from cloudevents_kafka.attributes import extension_types
from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED, RULES
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.formats import registry
from cloudevents_kafka.formats.json import JsonFormat
from tests.spark.generated import ADDRESSES, generated
from tests.spark.records import BASE, binary, changed, document, edges, structured, vectors
from tests.spark.rows import expected, read_by_java, rows_of
from tests.support import peer_samples
from tests.support.samples import one_in
from tests.support.strategies import scaled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OTHER_FORMAT = "an event format other than JSON"
OTHER_CHARSET = "structured data in a charset that is not UTF-8 or US-ASCII"


def left_to_python(record: Record, fields: dict[str, Any]) -> str | None:
    """Return why Java leaves a valid event to Python, or None if it must read it."""
    if fields["mode"] == "binary":
        return None
    content_type = next(value for name, value in record.headers if name == "content-type" and value)
    if media_type(content_type.decode()).format != "json":
        return OTHER_FORMAT
    data_type = media_type(fields.get("datacontenttype", "application/json"))
    return OTHER_CHARSET if "data_kind" in fields and not data_type.utf8 else None


def compare(spark: SparkSession, records: list[Record]) -> dict[str, int]:
    """Check that Java reads all valid events as `decode` does; return the number of those left by reason."""
    read = read_by_java(rows_of(spark, records))
    counts = {"read": 0, "broken": 0}
    for offset, record in enumerate(records):
        wanted = expected(record)
        reason = "broken" if "error" in wanted else left_to_python(record, wanted) or "read"
        found = read.get(offset)
        assert found == (wanted if reason == "read" else None), (reason, record.headers, record.value, wanted)
        counts[reason] = counts.get(reason, 0) + 1
    return counts


@pytest.mark.parametrize("peer", one_in(3, peer_samples.PEERS))
def test_no_record_of_a_peer_needs_python(spark: SparkSession, peer: str) -> None:
    """The share of rows for Python is 0 among the valid binary and JSON records of each other SDK."""
    samples = [sample for sample in peer_samples.read(peer) if sample.encoding in ("binary", "json")]
    counts = compare(spark, [sample.record for sample in samples])
    assert counts == {
        "read": sum(sample.is_event for sample in samples),
        "broken": sum(not sample.is_event for sample in samples),
    }
    assert counts["read"] >= 300


def test_vectors_edges_and_changed_records(spark: SparkSession) -> None:
    """Only the listed kinds of valid events are left to Python."""
    counts = compare(spark, [*vectors(), *edges(), *changed(scaled(2000), seed=2)])
    assert counts.keys() == {"read", "broken", OTHER_FORMAT, OTHER_CHARSET}
    assert counts["read"] > scaled(1500)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.release) for seed in range(2, 12))]
)
def test_generated_records(spark: SparkSession, seed: int) -> None:
    """Random JSON texts and headers, valid and broken, are read as `decode` reads them."""
    counts = compare(spark, list(generated(scaled(8000), seed)))
    assert counts.keys() == {"read", "broken", OTHER_CHARSET}
    assert counts["read"] > scaled(2000)
    assert counts["broken"] > scaled(2000)


def test_addresses_times_and_rules_of_extensions(spark: SparkSession) -> None:
    """Each grammar is that of Python: addresses in URIs, instants, and rules about two attributes."""
    counts = compare(spark, list(_grammars()))
    assert min(counts["read"], counts["broken"]) > 20


def _grammars() -> Iterator[Record]:
    for address in ADDRESSES:
        yield binary({**BASE, "source": f"x://u:p@[{address}]:1/é?q#f"})
        yield structured({**BASE, "dataschema": f"x://[{address}]"})
    instants = (
        "2018-04-05T00:00:00",
        "2018-04-05T00:00:00.1234567",
        "2018-04-05T00:00:00.12345670",
        "0001-01-01T00:00:00",
    )
    instants += (
        "2016-12-31T23:59:60",
        "2016-12-31T23:59:59.999999",
        "2016-12-31T23:59:60.5",
        "0000-02-29T00:00:00.5",
    )
    instants += (
        "2018-04-05T00:00:00.1234568",
        "0000-01-01T00:00:00",
        "0000-12-31T23:59:60",
        "2016-12-31T23:59:59.9999999",
    )
    for start in instants:
        for end in instants:
            yield binary(
                {**BASE, "deprecated": "true", "deprecationfrom": start + "Z", "deprecationsunset": end + "z"}
            )
    for count in (1, 15, 16, 17, 200):
        many: dict[str, Any] = {f"n{n}": n for n in range(count)}
        yield structured({**BASE, **many})
        yield structured({**BASE, **many, "gone": None})
        yield structured({**BASE, **many, "n0": None})
        yield document(structured({**BASE, **many}).value[:-1] + b',"n%d":null}' % (count - 1))  # type: ignore[index]
        yield binary({**BASE, **{name: str(value) for name, value in many.items()}})


@pytest.fixture
def registrations() -> Iterator[None]:
    """Forget what a test registers."""
    extensions, formats = extension_types.registered(), registry.registered()
    yield
    extension_types.restore(extensions)
    registry.restore(formats)


@pytest.mark.usefixtures("registrations")
def test_registered_extensions(spark: SparkSession) -> None:
    """Java knows registered types and needs; records with an extension that has a function are left."""
    register_extension("comexampleint", AttributeType.INTEGER, needs=["subject", "comexampleuri"])
    register_extension("comexampleuri", AttributeType.URI)
    register_extension("partitionkey", AttributeType.BOOLEAN)
    register_extension("comexamplerule", AttributeType.STRING, accepts=lambda value: value != "")
    good = {name: value for name, value in BASE.items() if name != "partitionkey"}
    records = [
        structured({**good, **more})
        for more in (
            {"comexampleint": 5, "comexampleuri": "a:b"},
            {"comexampleint": "5", "comexampleuri": "a:b"},
            {"comexampleint": "x", "comexampleuri": "a:b"},
            {"comexampleint": 5},
            {"comexampleint": 5, "comexampleuri": "b"},
            {"partitionkey": True},
            {"partitionkey": "true"},
            {"partitionkey": "yes"},
        )
    ]
    assert compare(spark, records) == {"read": 4, "broken": 4}
    assert read_by_java(rows_of(spark, [binary({**good, "comexamplerule": "x"}), binary(good)])).keys() == {1}


@pytest.mark.usefixtures("registrations")
def test_a_registered_json_format(spark: SparkSession) -> None:
    """If a user registered another format named json, Java leaves structured records to it."""
    register_format("json", JsonFormat)
    assert read_by_java(rows_of(spark, [structured(BASE), binary(BASE)])).keys() == {1}


def test_all_documented_rules_have_names() -> None:
    """The Java function knows all rules of documented extensions."""
    assert {rule for extension in DOCUMENTED.values() for rule in extension.rules} == set(RULES.values())
