"""Data that is decoded while reading, as values of a program's types, and checked by its schema."""

from __future__ import annotations

import pickle
import runpy
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import jsonschema
import msgspec
import pydantic
import pytest

from cloudevents_kafka import (
    BrokenData,
    BrokenEvent,
    Codec,
    DataError,
    Decoded,
    Event,
    EventConsumer,
    Record,
    Undecodable,
    codecs,
    key_to_attribute,
    register_codec,
    to_record,
)
from cloudevents_kafka.clients.typed_data import by_dataschema, by_type
from cloudevents_kafka.testing import FakeConsumer, FakeMessage
from tests.support.cases import each

JSON = "application/json"


class Model(pydantic.BaseModel):
    number: int


class Struct(msgspec.Struct):
    number: int


@dataclass
class Plain:
    number: int


class Status(msgspec.Struct):
    status: Literal["open", "closed"]


class Typed(TypedDict):
    number: int


def order(data: Any = None, *, type: str = "order.placed", **attributes: Any) -> Event:
    return Event(id="1", source="/shop", type=type, data=data, **attributes)


def records(*events: Event | Record, mode: Any = "binary") -> FakeConsumer:
    """Return a client of a topic with these events and records."""
    made = [event if isinstance(event, Record) else to_record(event, key="k", mode=mode) for event in events]
    messages = [FakeMessage("orders", each.value, each.key, each.headers) for each in made]
    client = FakeConsumer(messages)
    client.subscribe(["orders"])
    return client


def read(*events: Event | Record, mode: Any = "binary", **options: Any) -> list[Any]:
    """Return the items of a consumer with these options, read one by one, which are those of batches."""
    items = list(EventConsumer(records(*events, mode=mode), **options).items(idle_timeout=0.01))
    batches = EventConsumer(records(*events, mode=mode), **options).batches(10, 0, idle_timeout=0.01)
    assert [type(item) for batch in batches for item in batch] == [type(item) for item in items]
    return items


BROKEN = order(b"{", datacontenttype=JSON)


def test_data_is_decoded_lazily_by_default() -> None:
    """A malformed payload raises an error where it is used, and only there."""
    (item,) = read(BROKEN)
    with pytest.raises(DataError, match="data is not JSON"):
        _ = item.event.data


def test_eager_data_makes_broken_data_an_item() -> None:
    """The record is Undecodable with its event; the loop reads on."""
    one, broken, two = read(order({"a": 1}), BROKEN, order(), eager_data=True)
    assert (one.event.data, two.event.data) == ({"a": 1}, None)
    assert isinstance(broken, Undecodable)
    error = broken.error
    assert isinstance(error, BrokenData)
    assert isinstance(error, DataError)
    assert (error.verdict, error.record, error.event.id) == ("broken-data", broken.record, "1")
    assert str(error).startswith("orders[0]@1: broken data: data is not JSON: ")
    assert isinstance(error.__cause__, DataError)
    assert pickle.loads(pickle.dumps(error)).event == error.event


def test_eager_data_does_not_change_other_verdicts() -> None:
    """A record that breaks rules of attributes is a BrokenEvent, as without eager data."""
    record = to_record(order())
    headers = [(name, b"" if name == "ce_id" else value) for name, value in record.headers]
    (item,) = read(Record(headers=headers), eager_data=True)
    assert isinstance(item.error, BrokenEvent)


def test_strict_raises_broken_data() -> None:
    """The error has its cause, and reading continues after the record."""
    events = EventConsumer(records(BROKEN, order({"a": 1})), strict=True, eager_data=True)
    with pytest.raises(BrokenData) as caught:
        events.poll(0)
    assert isinstance(caught.value.__cause__, DataError)
    item = events.poll(0)
    assert item is not None
    assert item.event.data == {"a": 1}


def test_eager_data_reads_with_a_data_reader() -> None:
    """An error of the reader is BrokenData, and its value is the data."""
    one, broken = read(
        order(b"1"),
        order(b"0"),
        data_reader=lambda event, record: 1 / int(event.payload or 0),
        eager_data=True,
    )
    assert one.event.data == 1
    assert "ZeroDivisionError" in str(broken.error)


@each("mode", ["binary", "structured"])
@each("content_type", [JSON, "application/vnd.shop+json; charset=utf-16", None])
@each("data_type", [Model, Struct, Plain, Typed])
def test_data_is_a_value_of_the_type(data_type: Any, content_type: str | None, mode: str) -> None:
    """Each kind of type is read from JSON in any charset and mode."""
    (item,) = read(order({"number": 17}, datacontenttype=content_type), mode=mode, data_type=data_type)
    assert item.event.data == data_type(number=17)
    assert item.event.data is item.event.data
    assert item.event.replace(subject="s").data == data_type(number=17)
    assert item.event.payload is not None


@each("data_type", [list[Model], list[Struct], dict[str, Plain], Model | None, int])
def test_containers_and_unions_are_types(data_type: Any) -> None:
    """What pydantic and msgspec read is read, also within containers."""
    values = {"list": [{"number": 1}], "dict": {"a": {"number": 1}}, "int": 3}
    name = getattr(data_type, "__name__", "")
    value = values.get(name, {"number": 1})
    (item,) = read(order(value, datacontenttype=JSON), data_type=data_type)
    found = item.event.data
    assert found in (3, [Model(number=1)], [Struct(1)], {"a": Plain(1)}, Model(number=1))


def test_a_type_has_its_article() -> None:
    """The message has the article of the type's first sound."""
    (item,) = read(order(b"[]", datacontenttype=JSON), data_type=int)
    assert "broken data: the data must be an int: " in str(item.error)


@each("data_type", [Model, Struct, Plain, Typed])
@each(
    ("payload", "expected"),
    [
        (b'{"number": "secret-5"}', "number"),
        (b"{}", "number"),
        (b"[]", "must be a "),
        (b'{"number"', "must be a "),
        (b'{"number": 1, "x": "\xff"}', "must be a "),
        (b"\xff", "must be a "),
        (b"[" * 100_000, "must be a "),
        (None, "the event has no data"),
    ],
)
def test_data_that_does_not_fit_is_broken_data(data_type: Any, payload: bytes | None, expected: str) -> None:
    """The message names the type and the member, without the data."""
    (item,) = read(order(payload, datacontenttype=JSON), data_type=data_type)
    assert isinstance(item.error, BrokenData)
    text = str(item.error)
    assert text.startswith(f"orders[0]@0: broken data: the data must be a {data_type.__name__}")
    assert expected in text
    assert "secret" not in text
    assert text.isprintable()


def test_messages_of_msgspec_are_without_data() -> None:
    """An enum's wrong value is data, too."""
    (item,) = read(order({"status": "secret - at $.x"}, datacontenttype=JSON), data_type=Status)
    assert "secret" not in str(item.error)
    assert "$.status" in str(item.error)


@dataclass
class Wrapped:
    model: Model
    rest: list[Wrapped]


@each(
    ("data_type", "good", "wrong"),
    [
        (Wrapped, {"model": {"number": 1}, "rest": []}, {"model": {"number": "x"}, "rest": []}),
        (Annotated[int, pydantic.Field(gt=0)], 1, 0),
        (Annotated[int, msgspec.Meta(gt=0)], 1, 0),
    ],
)
def test_rules_within_a_type_are_checked(data_type: Any, good: Any, wrong: Any) -> None:
    """A model in a field of a dataclass, and rules in annotations of either library, are checked."""
    item, broken = read(
        order(good, datacontenttype=JSON), order(wrong, datacontenttype=JSON), data_type=data_type
    )
    assert isinstance(item, Decoded)
    assert isinstance(broken.error, BrokenData)


def test_no_data_is_a_value_of_an_optional_type() -> None:
    """An event without data is None if the type says so."""
    (item,) = read(order(), data_type=Struct | None)
    assert isinstance(item, Decoded)
    assert item.event.data is None


def test_types_by_the_type_of_the_event() -> None:
    """Each type of event has its class; other events are read as without, and eagerly."""
    types = {"order.placed": Model, "order.paid": Struct}
    placed, paid, other, broken = read(
        order({"number": 1}),
        order({"number": 2}, type="order.paid"),
        order({"number": 3}, type="order.sent"),
        order(b"{", type="order.sent", datacontenttype=JSON),
        data_type=types,
    )
    assert placed.event.data == Model(number=1)
    assert paid.event.data == Struct(2)
    assert other.event.data == {"number": 3}
    assert isinstance(broken.error, BrokenData)


@pytest.mark.usefixtures("registry")
def test_a_codec_decodes_before_the_type() -> None:
    """Avro becomes a value of the type; a codec that returns one of it is enough."""
    schema = {"type": "record", "name": "O", "fields": [{"name": "number", "type": "int"}]}
    register_codec("application/avro", codecs.avro(schema))
    avro = order({"number": 5}, datacontenttype="application/avro")
    wrong = order(b"", datacontenttype="application/avro")
    for data_type in (Model, Struct, Plain):
        item, broken = read(avro, wrong, data_type=data_type)
        assert item.event.data == data_type(number=5)
        assert isinstance(broken.error, BrokenData)
    made = Model(number=9)
    register_codec(JSON, Codec(lambda payload: made))
    (item,) = read(order(b"{}", datacontenttype=JSON), data_type=Model)
    assert item.event.data is made


def test_a_function_of_the_event_is_a_hook() -> None:
    """It sees the mapped event, and an exception of any kind is BrokenData without its text."""

    def hook(event: Event) -> str:
        if event.type == "bad":
            raise LookupError("secret")
        return f"{event['tenant']}: {event.payload!r}"

    mapper = key_to_attribute("tenant")
    one, bad = read(order(b"x"), order(type="bad"), data_type=hook, reverse_key_mapper=mapper)
    assert one.event.data == "k: b'x'"
    assert isinstance(bad.error, BrokenData)
    assert "LookupError" in str(bad.error)
    assert "secret" not in str(bad.error)


def test_a_validator_by_dataschema() -> None:
    """JSON Schema refuses data of its schema; other schemas, and none, are refused or have a check."""
    uri = "https://shop.example/order.json"
    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    check = jsonschema.Draft202012Validator(schema).validate
    events = [
        order({"number": 1}, dataschema=uri),
        order({"number": "secret"}, dataschema=uri),
        order({"number": 1}, dataschema=f"{uri}/2"),
        order({"number": 1}),
        order(b"{", dataschema=uri, datacontenttype=JSON),
    ]
    good, invalid, unknown, absent, malformed = read(*events, data_type=by_dataschema({uri: check}))
    assert good.event.data == {"number": 1}
    for item in (invalid, unknown, absent, malformed):
        assert isinstance(item.error, BrokenData)
        assert "secret" not in str(item.error)
    assert "ValidationError" in str(invalid.error)
    assert f"got '{uri}/2'" in str(unknown.error)
    assert "got no dataschema" in str(absent.error)
    (item,) = read(events[3], data_type=by_dataschema({None: lambda data: None}))
    assert item.event.data == {"number": 1}


@each("wrong", [5, "Order", object(), type("Custom", (), {})])
def test_other_types_are_refused_at_once(wrong: Any) -> None:
    """The constructor says what may be passed."""
    with pytest.raises(
        TypeError, match=r"data_type must be a pydantic model, .*; for other types, pass data_reader"
    ):
        EventConsumer(records(), data_type=wrong)
    with pytest.raises(TypeError, match="data_type must be"):
        EventConsumer(records(), data_type={"order.placed": wrong})


@each("data_type", [Model, Struct, Plain, Typed, {"order.placed": Model, "t": Struct}])
@each("content_type", [JSON, "application/avro", None])
def test_a_reader_decodes_before_the_type(data_type: Any, content_type: str | None) -> None:
    """The value of a reader is converted, also for JSON; what either refuses is BrokenData."""

    def reader(event: Event, record: Record) -> Any:
        assert record.topic == "orders"
        return {"number": int((event.payload or b"")[1:])}

    items = read(
        order(b"#17", datacontenttype=content_type),
        order(b"#secret", datacontenttype=content_type),
        order(datacontenttype=content_type),
        data_type=data_type,
        data_reader=reader,
    )
    assert items[0].event.data in (Model(number=17), Struct(17), Plain(17), {"number": 17})
    assert items[0].event.payload == b"#17"
    for item in items[1:]:
        assert isinstance(item.error, BrokenData)
        assert "secret" not in str(item.error)


def test_a_value_of_a_reader_may_have_the_type() -> None:
    """A value of the type is kept, another is BrokenData, and other events have the value of the reader."""
    made = Model(number=9)
    values = iter([made, {"number": "x"}, 3] * 2)
    good, wrong, other = read(
        order(b"{}"),
        order(b"{}"),
        order(b"{}", type="order.sent"),
        data_type={"order.placed": Model},
        data_reader=lambda event, record: next(values),
    )
    assert good.event.data == made
    assert "must be a Model: number" in str(wrong.error)
    assert other.event.data == 3


def test_hooks_see_the_value_of_a_reader() -> None:
    """A function of the event and a check by dataschema get what the reader returned."""
    uri = "https://shop.example/order.json"
    reader = {"data_reader": lambda event, record: [record.topic]}
    (item,) = read(order(b"x"), data_type=lambda event: {"from": event.data}, **reader)
    assert item.event.data == {"from": ["orders"]}
    seen: list[Any] = []
    (item,) = read(order(b"x", dataschema=uri), data_type=by_dataschema({uri: seen.append}), **reader)
    assert item.event.data == seen[0] == ["orders"]


def test_by_type_accepts_types_and_hooks() -> None:
    """A mapping may have both, and is checked at once."""
    hook = by_type({"order.placed": Model, "order.paid": lambda event: event.id, "order.sent": {"x": int}})
    assert hook(order({"number": 1})) == Model(number=1)
    assert hook(order({"number": 1}, type="order.paid")) == "1"
    assert hook(order({"number": 1}, type="order.sent")) == {"number": 1}
    assert hook(order(5, type="other")) == 5
    with pytest.raises(TypeError, match="data_type must be"):
        by_type({"order.placed": 5})


@pytest.mark.usefixtures("registry")
def test_a_codec_of_json_serves_json_without_a_content_type() -> None:
    """In every mode, as the content type that JSON data implies; also to write data."""
    register_codec(JSON, codecs.typed_json(Struct))
    event = order(Struct(3))
    assert event.payload == b'{"number":3}'
    assert event.data == Struct(3)
    for mode in ("structured", "binary"):
        (item,) = read(event, mode=mode)
        assert item.event.data == Struct(3)
    register_codec(JSON, Codec(encode=lambda value: b"not JSON"))
    with pytest.raises(ValueError, match="must return JSON in UTF-8"):
        order(Struct(3))


def test_the_example_reads_fakes() -> None:
    """`examples/typed_orders.py` returns the orders, and the reasons why other records are not orders."""
    path = Path(__file__).parents[2] / "examples" / "typed_orders.py"
    example = runpy.run_path(str(path), init_globals={})
    example["read_orders"].__globals__["IDLE_SECONDS"] = 0.05
    kind = "com.example.order.placed"
    events = [order({"order": 1, "step": "placed"}, type=kind), order({"order": "x"}, type=kind), order(1)]
    before = signal.getsignal(signal.SIGTERM)
    try:
        placed, aside = example["read_orders"](records(*events, Record(value=b"other")), "orders")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [(each.order, each.step) for each in placed] == [(1, "placed")]
    assert [reason.split(":")[0] for reason in aside] == ["1", "orders[0]@3"]
