"""Pydantic models as data: written as dataclasses and msgspec Structs are, and read back by their type."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest

from cloudevents_kafka import DataError, Event, InvalidEvent, codecs, from_record, register_codec, to_record
from cloudevents_kafka.clients.typed_data import read_as
from cloudevents_kafka.codecs.json import encode_json
from tests.support.cases import each


class Line(pydantic.BaseModel):
    sku: str
    price: Decimal


class Order(pydantic.BaseModel):
    number: int = pydantic.Field(alias="orderNumber")
    at: datetime | None = None
    lines: list[Line] = []


class Numbers(pydantic.RootModel[list[float]]):
    """A model that is written as a list."""


class Refusing(pydantic.BaseModel):
    number: int

    @pydantic.field_serializer("number")
    def refuse(self, number: int) -> int:
        raise LookupError("S3CRET")


@dataclasses.dataclass
class Plain:
    line: Line


class Struct(msgspec.Struct):
    lines: tuple[Line, ...]


LINE = Line(sku="a", price=Decimal("9.50"))
LINE_JSON = b'{"sku":"a","price":"9.50"}'
ORDER = Order(orderNumber=17, at=datetime(2026, 1, 31, tzinfo=UTC), lines=[LINE])


def placed(data: Any, **attributes: Any) -> Event:
    return Event(id="1", source="/shop", type="order.placed", data=data, **attributes)


@each(
    ("data", "payload"),
    [
        (LINE, LINE_JSON),
        ([LINE, None], b"[" + LINE_JSON + b",null]"),
        ({"line": LINE}, b'{"line":' + LINE_JSON + b"}"),
        (Plain(LINE), b'{"line":' + LINE_JSON + b"}"),
        (Struct((LINE,)), b'{"lines":[' + LINE_JSON + b"]}"),
        (Numbers([1.5]), b"[1.5]"),
        (ORDER, b'{"orderNumber":17,"at":"2026-01-31T00:00:00Z","lines":[' + LINE_JSON + b"]}"),
    ],
    ids=lambda value: type(value).__name__,
)
@each("content_type", [None, "application/json", "application/order+json"])
def test_a_model_is_json(data: Any, payload: bytes, content_type: str | None) -> None:
    """A model, also within other values, is a JSON object with the names by which it is read."""
    event = placed(data, datacontenttype=content_type)
    assert event.payload == payload
    assert from_record(to_record(event, mode="structured")).data == event.data
    assert event.replace(data=data) == event


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_a_model_comes_back(mode: Any) -> None:
    """An event that was made from a model is read as the model."""
    assert read_as(Order)(from_record(to_record(placed(ORDER), mode=mode))) == ORDER
    assert read_as(Numbers)(placed(Numbers([1.5]))) == Numbers([1.5])


def test_another_charset_and_a_codec() -> None:
    """A model is written in the charset of its content type, and a codec has precedence."""
    assert (
        placed(Line(sku="é", price=1), datacontenttype="application/json; charset=utf-16").data["sku"] == "é"
    )
    with pytest.raises(
        InvalidEvent, match="text/plain must be text or bytes, got a Line; set a JSON content"
    ):
        placed(LINE, datacontenttype="text/plain")


@pytest.mark.usefixtures("registry")
def test_a_registered_codec_writes_models() -> None:
    """The codec of a type of events may be that of pydantic itself."""
    adapter = pydantic.TypeAdapter(Line)
    register_codec(
        "application/json", codecs.Codec(adapter.validate_json, adapter.dump_json), type="order.placed"
    )
    assert placed(LINE).payload == LINE_JSON
    assert placed(LINE).data == LINE


@each("data", [Numbers([math.nan]), [Numbers([1.0, -math.inf])], {"a": Numbers([math.inf])}])
def test_a_model_with_a_number_that_json_does_not_have(data: Any) -> None:
    """NaN and infinities are refused, as in other values, and are not written as null."""
    with pytest.raises(DataError, match="it has a NaN or infinite number"):
        encode_json(data)


def test_a_serializer_that_fails() -> None:
    """The error names the model and the class of the exception, which is its cause, and has no data."""
    with pytest.raises(DataError, match="a Refusing has a serializer that raised ") as caught:
        encode_json([Refusing(number=1)])
    assert "S3CRET" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_pydantic_is_not_imported() -> None:
    """Data without a model is encoded, or refused, without pydantic."""
    program = (
        "import dataclasses, sys\n"
        "from cloudevents_kafka import Event\n"
        "@dataclasses.dataclass\n"
        "class Order:\n"
        "    number: int\n"
        "assert Event(id='1', source='/', type='t', data=[Order(1)]).payload == b'[{\"number\":1}]'\n"
        "try:\n"
        "    Event(id='1', source='/', type='t', data=object())\n"
        "except ValueError:\n"
        "    pass\n"
        "assert not [name for name in sys.modules if name.startswith('pydantic')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


class Text(str):
    """A text such as ``numpy.str_``."""

    __slots__ = ()

    def __str__(self) -> str:
        return "another text"


class Real(float):
    """A number such as ``numpy.float64``."""


class Whole(int):
    """A number such as a constant of a library."""


def test_subclasses_of_texts_and_numbers() -> None:
    """Values of subclasses of str, int and float are written as json.dumps writes them."""
    data = [Text("x"), Real(9.5), Whole(7), {Text("k"): Real(0.1)}]
    assert placed(data).payload == b'["x",9.5,7,{"k":0.1}]'
    for value in data:
        assert placed({"a": value}).data == {"a": value}
        assert placed(value).data == value
    for number in (math.nan, math.inf):
        for value in (Real(number), [Real(number)], {"a": [2**70, Real(number)]}):
            with pytest.raises(DataError, match="it has a NaN or infinite number"):
                encode_json(value)
