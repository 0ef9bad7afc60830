"""The Protobuf event format with the Java SDK, with generated code, and without the package protobuf."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from cloudevents_kafka import EncodeError, InvalidEvent, Record, from_record, to_record
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.formats import protobuf
from cloudevents_kafka.primitives.installing import pip_install
from tests.support.cases import each

from .java_events import java_event
from .official import MIN, PROTOBUF, CloudEvent, bytes_field, entry, least, problems, sized

B, J, T, P = DataKind.BYTES, DataKind.JSON, DataKind.TEXT, DataKind.PROTO
ANY = bytes.fromhex("0a05782e792f5a12020805")  # type URL x.y/Z, and five bytes less one


# --- other implementations -----------------------------------------------------------

BASE = "121668747470733a2f2f636c6f75646576656e74732e696f1a03312e302213696f2e636c6f75646576656e74732e74657374"
# Captured from cloudevents-protobuf 4.0.1 for Java, by id: the kind of data, and the bytes after `BASE`.
JAVA = {
    "minimal": (B, ""),
    "minimalWithTime": (B, "2a100a0474696d6512083a0608d4ba99d605"),
    "allCore": (
        B,
        (
            "2a1f0a0f64617461636f6e74656e7474797065120c1a0a746578742f706c61696e2a310a0a64617461736368656d61"
            "12232a2168747470733a2f2f636c6f75646576656e74732e696f2f64617461736368656d612a120a077375626a6563"
            "7412071a0574657374732a100a0474696d6512083a0608d4ba99d605"
        ),
    ),
    "simpleTextData": (
        T,
        "2a1f0a0f64617461636f6e74656e7474797065120c1a0a746578742f706c61696e3a0b53696d706c652074657874",
    ),
    "allExtensionTypes": (
        B,
        (
            "2a100a0a657874696e74656765721202100a2a100a0a657874626f6f6c65616e120208012a130a0965787473747269"
            "6e6712061a04746578742a110a0965787462696e617279120422024d612a180a0c65787474696d657374616d701208"
            "3a0608c0f09ba106"
        ),
    ),
    "uri": (
        B,
        (
            "2a220a0665787475726912182a1668747470733a2f2f636c6f75646576656e74732e696f2a1f0a0965787475726972"
            "6566121232102f2f617574686f726974792f70617468"
        ),
    ),
    "json": (
        J,
        (
            "2a250a0f64617461636f6e74656e747479706512121a106170706c69636174696f6e2f6a736f6e3a107b2261223a20"
            "5b312c2022c3a9225d7d"
        ),
    ),
    "jsoncharset": (
        B,
        (
            "2a340a0f64617461636f6e74656e747479706512211a1f6170706c69636174696f6e2f6a736f6e3b20636861727365"
            "743d7574662d3832027b7d"
        ),
    ),
    "xml": (
        T,
        (
            "2a240a0f64617461636f6e74656e747479706512111a0f6170706c69636174696f6e2f786d6c3a0f3c73747566663e"
            "3c2f73747566663e"
        ),
    ),
    "binary": (
        B,
        (
            "2a2d0a0f64617461636f6e74656e7474797065121a1a186170706c69636174696f6e2f6f637465742d73747265616d"
            "32020102"
        ),
    ),
    "noct": (B, "32026869"),
    "emptytext": (T, "2a1f0a0f64617461636f6e74656e7474797065120c1a0a746578742f706c61696e3a00"),
    "nanos": (B, "2a150a0474696d65120d3a0b08d4ba99d60510959aef3a"),
    "old": (B, "2a1b0a0474696d6512133a1108ffffffffffffffffff011080cab5ee01"),
    "anynoct": (
        P,
        (
            "42330a2d747970652e676f6f676c65617069732e636f6d2f676f6f676c652e70726f746f6275662e54696d65737461"
            "6d7012020805"
        ),
    ),
}


@each(("name", "captured"), JAVA.items(), ids=JAVA)
def test_values_of_the_java_sdk(name: str, captured: tuple[DataKind, str]) -> None:
    """The bytes of the Java SDK are read as its event, and written as the same message."""
    kind, rest = captured
    value = b"\x0a" + sized(name.encode()) + bytes.fromhex(BASE + rest)
    event, expected = PROTOBUF.decode(value), java_event(name)
    assert event.payload == expected.payload
    assert event.kind is kind
    assert {n: event.text(n) for n in event} == {n: expected.text(n) for n in expected}
    if not name.startswith(("uri", "allExt")):  # types of extensions that nobody registered
        assert CloudEvent.FromString(PROTOBUF.encode(event.replace())) == CloudEvent.FromString(value)


def test_a_type_url_is_not_a_dataschema() -> None:
    """A type URL without a scheme, as in the format's example, breaks the core rule (R-11)."""
    url = b"type.googleapis.com/google.protobuf.Timestamp"
    assert problems(MIN + entry("dataschema", bytes_field(6, url))) == [("dataschema", "P-02")]
    assert problems(MIN + entry("dataschema", bytes_field(5, url))) == [("dataschema", "T-10")]
    assert (
        PROTOBUF.decode(MIN + entry("dataschema", bytes_field(5, b"https://" + url))).dataschema
        == f"https://{url.decode()}"
    )


def test_generated_code_can_be_loaded_too() -> None:
    """The official declaration in the default pool does not conflict with that of the package."""
    script = """
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import Default
from cloudevents_kafka import Event, to_record
file = FileDescriptorProto(name="cloudevents.proto", package="io.cloudevents.v1", syntax="proto3")
file.message_type.add(name="CloudEvent").field.add(name="other", number=1, type=3, label=1)
event = Event(id="1", source="/", type="t")
to_record(event, mode="structured", format="protobuf")
Default().AddSerializedFile(file.SerializeToString())
to_record(event, mode="structured", format="protobuf")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


# --- without google's package --------------------------------------------------------


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Simulate that the package protobuf is not installed."""
    for name in [name for name in sys.modules if name.startswith("google.protobuf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "cloudevents_kafka.formats.protobuf_schema", raising=False)
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    protobuf._message_class.cache_clear()
    yield
    protobuf._message_class.cache_clear()


@pytest.mark.usefixtures("no_package")
def test_without_the_package() -> None:
    """Events are read, and written unchanged; for other events the error names the package."""
    record = Record(value=MIN, headers=[("content-type", b"application/cloudevents+protobuf")])
    event = from_record(record)
    assert to_record(event, like=record) == record
    with pytest.raises(EncodeError, match=re.escape(pip_install("protobuf"))):
        to_record(event.replace(subject="s"), mode="structured", format="protobuf")
    with pytest.raises(InvalidEvent):
        least(data=object())
