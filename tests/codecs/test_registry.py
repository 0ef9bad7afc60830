"""The registry of codecs: lookup by content type, and errors of codecs."""

from __future__ import annotations

import io
import pickle
from typing import Any

import fastavro
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import (
    Codec,
    DataError,
    Event,
    InvalidEvent,
    Record,
    from_record,
    register_codec,
    to_record,
)
from cloudevents_kafka.codecs import avro
from cloudevents_kafka.codecs.json import typed_json
from cloudevents_kafka.codecs.registry import find
from tests.support import strategies as make
from tests.support.cases import each

pytestmark = pytest.mark.usefixtures("registry")

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "total", "type": "string"}],
}


class Order(msgspec.Struct):
    id: int
    total: str


def upper(mark: str) -> Codec:
    """Return a codec that marks what it has read and written."""
    return Codec(lambda payload: (mark, payload), lambda value: f"{mark}{value}".encode())


def event(content_type: str | None, data: Any, **attributes: Any) -> Event:
    return Event(id="1", source="/", type="t", datacontenttype=content_type, data=data, **attributes)


def test_data_goes_through_its_codec() -> None:
    """A value is encoded and decoded by the codec, in both modes; bytes are the payload."""
    register_codec("application/avro", avro(ORDER))
    order = {"id": 17, "total": "9.50"}
    made = event("application/avro", order)
    assert made.payload == b"\x22\x089.50"
    assert made.data == order
    for mode in ("binary", "structured"):
        again = from_record(to_record(made, mode=mode))  # type: ignore[arg-type]  # both are modes
        assert again == made
        assert again.data == order
        assert again.data is again.data
    assert event("application/avro", made.payload).data == order
    assert made.replace(data={"id": 18, "total": ""}).payload == b"\x24\x00"
    assert event("application/avro", None).data is None


@each(
    ("content_type", "about", "mark"),
    [
        ("Application/CBOR; a=b", {}, "exact"),
        ("application/cbor", {"type": "u"}, "type"),
        ("application/cbor", {"dataschema": "urn:s"}, "schema"),
        ("application/cbor", {"dataschema": "urn:other"}, "exact"),
        ("application/cbor", {"type": "u", "dataschema": "urn:s"}, "both"),
        ("application/vnd.x+CBOR", {}, "suffix"),
        ("application/vnd.y+cbor", {}, "exact y"),
        ("application/cbor+x", {}, None),
        ("cbor", {}, None),
        ("", {}, None),
        (None, {}, None),
    ],
)
def test_the_most_specific_codec_is_used(content_type: str | None, about: dict[str, str], mark: str) -> None:
    """A media type wins over a suffix, a type or schema over none; case and parameters are ignored."""
    register_codec("+cbor", upper("suffix"))
    register_codec("application/CBOR", upper("exact"))
    register_codec("application/vnd.y+cbor", upper("exact y"))
    register_codec("application/cbor", upper("type"), type="u")
    register_codec("application/cbor", upper("schema"), dataschema="urn:s")
    register_codec("application/cbor", upper("both"), type="u", dataschema="urn:s")
    found = find(content_type, {"type": "t", **about})
    assert (None if found is None else found.decode and found.decode(b"")[0]) == mark


def test_a_codec_for_json() -> None:
    """JSON of one event type becomes an object of the user, and stays JSON in an envelope."""
    register_codec("application/json", typed_json(Order), type="order.placed")
    placed = Event(
        id="1", source="/", type="order.placed", datacontenttype="application/json", data=Order(1, "2")
    )
    record = to_record(placed, mode="structured")
    assert (record.value or b"").endswith(b',"data":{"id":1,"total":"2"}}')
    assert from_record(record).data == Order(1, "2")
    assert event("application/json", {"id": 1}).data == {"id": 1}
    with pytest.raises(DataError):
        _ = Event(
            id="1", source="/", type="order.placed", datacontenttype="application/json", data=b'{"id":1}'
        ).data


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16", "shift_jis", "us-ascii"])
def test_typed_json_in_the_charset_of_the_content_type(charset: str) -> None:
    """The codec of a type reads and writes JSON in the charset of the content type, as without a codec."""
    content_type = f"application/json;charset={charset}"
    without = event(content_type, {"id": 1, "total": "é"})
    register_codec("application/json", typed_json(Order))
    typed = event(content_type, Order(1, "é"))
    assert typed.payload == without.payload
    assert typed.data == event(content_type, without.payload).data == Order(1, "é")
    record = to_record(typed, mode="structured")
    assert msgspec.json.decode(record.value or b"")["data"] == {"id": 1, "total": "é"}
    assert from_record(record).data == Order(1, "é")


def test_a_codec_with_one_function() -> None:
    """Without one of the functions, data is decoded or encoded as without the codec."""
    register_codec("text/csv", Codec(decode=lambda payload: payload.decode().split(",")))
    assert event("text/csv", "a,b").payload == b"a,b"
    assert event("text/csv", "a,b").data == ["a", "b"]
    register_codec("text/csv", Codec(encode=lambda row: ",".join(row).encode()))
    assert event("text/csv", ["a", "b"]).data == "a,b"


class OwnError(Exception):
    """An exception of another library."""


def test_an_exception_in_a_codec_is_a_data_error() -> None:
    """The error has the content type and its cause, and no data; the payload is complete."""

    def fail(value: Any) -> Any:
        raise OwnError(f"S3CRET {value!r}")

    register_codec("application/x", Codec(fail, fail))
    read = event("application/x", b"S3CRET")
    for _ in range(2):
        with pytest.raises(DataError, match="data is not application/x: its codec raised OwnError") as caught:
            _ = read.data
        assert isinstance(caught.value.__cause__, OwnError)
        assert "S3CRET" not in str(caught.value)
    assert read.payload == b"S3CRET"
    with pytest.raises(InvalidEvent, match=r"a str cannot be written as application/x.*OwnError") as refused:
        event("application/x", "S3CRET")
    assert [(p.attribute, p.clause) for p in refused.value.problems] == [("data", "J-10")]
    assert "S3CRET" not in str(refused.value)


def test_a_failing_reader_of_data_without_a_content_type() -> None:
    """The message says which data cannot be decoded."""
    read = event(None, b"x").read_with(lambda _: 1 / 0)
    with pytest.raises(DataError, match=r"^data without a content type cannot be decoded: its codec"):
        _ = read.data


def test_a_codec_must_return_bytes() -> None:
    """Text from an encoder is refused."""
    register_codec("application/x", Codec(encode=str))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidEvent, match="must return bytes, got a str"):
        event("application/x", 5)


def test_a_value_without_a_codec_is_refused() -> None:
    """The error says what to register."""
    with pytest.raises(
        InvalidEvent, match=r"application/avro must be text or bytes, got a dict.*register a codec"
    ):
        event("application/avro", {})


@each("name", ["", "avro", "a/b;c=d", "a/b; ", "a/b ", "+", "++avro", "a/", "é/x", "a/*", "*/*"])
def test_invalid_media_types_are_refused(name: str) -> None:
    """A codec for a name that no content type can have would never be found."""
    with pytest.raises(ValueError, match="media_type must be like"):
        register_codec(name, Codec())


@given(st.integers(-(2**63), 2**63 - 1), make.json_texts, st.binary(max_size=4))
def test_avro_data_is_one_datum(number: int, text: str, more: bytes) -> None:
    """A datum is read as by fastavro; more or fewer bytes raise DataError."""
    codec = avro(ORDER)
    assert codec.decode is not None
    assert codec.encode is not None
    value = {"id": number, "total": text}
    payload = codec.encode(value)
    assert codec.decode(payload) == value == fastavro.schemaless_reader(io.BytesIO(payload), ORDER, None)
    if more:
        with pytest.raises(ValueError, match="must be one datum, but bytes follow"):
            codec.decode(payload + more)
    with pytest.raises((EOFError, IndexError)):
        codec.decode(payload[:-1] if text else b"")


def test_an_event_with_a_reader() -> None:
    """The reader has precedence over codecs, until the data changes."""
    register_codec("application/json", upper("registered"))
    events: list[Event] = []

    def read(event: Event) -> object:
        events.append(event)
        return [event.type, event.payload]

    plain = event("application/json", b"{}")
    own = plain.read_with(read)
    assert events == []
    assert own.data == ["t", b"{}"]
    assert own.data is own.data
    assert len(events) == 1
    assert own == plain
    assert own == pickle.loads(pickle.dumps(own))
    assert Event.of(own) is own
    assert plain.data == ("registered", b"{}")
    for changed in (own.replace(subject="s"), plain.read_with(read).replace(type="u").replace(subject="s")):
        assert changed.data == [changed.type, b"{}"]
        assert changed["subject"] == "s"
    assert plain.read_with(read).replace(data=b"x").data == ("registered", b"x")
    assert event(None, None).read_with(read).data is None
    with pytest.raises(DataError, match="its codec raised ZeroDivisionError"):
        _ = event(None, b"").read_with(lambda _: 1 / 0).data


def test_a_reader_keeps_the_structured_value() -> None:
    """An event of a structured record is written as that record's value."""
    record = to_record(event("application/json", {"a": 1}), mode="structured")
    assert to_record(from_record(record).read_with(lambda _: 5), mode="structured") == record


def test_a_codec_applies_to_its_media_type_only() -> None:
    """Data of other types and without a type is read as without codecs."""
    register_codec("application/x", upper("x"))
    headers = [*make.required_headers]
    assert from_record(Record(headers=headers, value=b"123")).data == b"123"
    assert event(None, {"a": 1}).data == {"a": 1}
    assert event("text/plain", "a").data == "a"


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    "codec",
    [
        None,
        bytes.decode,
        (bytes.decode, str.encode),
        Codec(5),  # type: ignore[arg-type]  # the mistake
        Codec(None, "x"),  # type: ignore[arg-type]  # the mistake
    ],
)
def test_other_objects_are_not_codecs(codec: Any) -> None:
    """Registration checks the codec at once."""
    with pytest.raises(TypeError, match="Codec"):
        register_codec("application/x", codec)


async def later(_: object) -> bytes:
    return b""


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["decode", "encode"])
def test_a_codec_must_not_be_a_coroutine_function(name: str) -> None:
    """Nothing would await it, and `event.data` would be a coroutine."""
    with pytest.raises(TypeError, match=f"^{name} must be a plain function, got a coroutine function$"):
        register_codec("application/x", Codec(**{name: later}))  # type: ignore[arg-type]  # the mistake


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("media_type", "about", "said"),
    [
        (None, {}, "media_type must be a str, got a NoneType"),
        ("a/b", {"type": 5}, "type must be a str, got an int"),
        ("a/b", {"type": b"t"}, "type must be a str, got a bytes"),
        ("a/b", {"dataschema": ["urn:s"]}, "dataschema must be a str, got a list"),
    ],
)
def test_keys_of_other_types_are_refused(media_type: Any, about: dict[str, Any], said: str) -> None:
    """A media type, type or schema must be a str."""
    with pytest.raises(TypeError, match=said):
        register_codec(media_type, Codec(), **about)
