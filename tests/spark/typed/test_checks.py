"""How Python reads payloads: it finds each misfit and its place."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import jsonschema
from hypothesis import given

from cloudevents_kafka.spark.typed.avro_checks import AvroChecks
from cloudevents_kafka.spark.typed.checks import check_json
from cloudevents_kafka.spark.typed.json_schema import shape_of
from cloudevents_kafka.spark.typed.shape import Member, Shape
from tests.spark.typed.payloads import (
    AVRO,
    EVERY_TYPE,
    PARSED,
    avro_of,
    avro_payloads,
    json_payloads,
    read_avro,
)
from tests.support.cases import each
from tests.support.strategies import examples

SHAPE = shape_of(EVERY_TYPE)
MISFITS = [
    (None, "data: it must be one JSON text, got no data"),
    (b"", "data: it must be one JSON text, got Expecting value at character 0"),
    (b"\xff", "data: it must be one JSON text, got bytes that are not UTF-8"),
    (b"[]", "data: it must be an object, got an array"),
    (b'{"a":1} x', "data: it must be one JSON text, got Extra data at character 8"),
    (b'{"a":NaN}', "data: it must be one JSON text, got NaN, which is not JSON"),
    (b"{}", "data: /a must be there, got no such member"),
    (b'{"a":1,"a":1}', "data: /a must be there once, got it more than once"),
    (b'{"a":null}', "data: /a must be an integer of 64 bits, got null"),
    (b'{"a":"1"}', "data: /a must be an integer of 64 bits, got a text"),
    (b'{"a":1.5}', "data: /a must be an integer of 64 bits, got a fraction"),
    (b'{"a":9223372036854775808}', "data: /a must be an integer of 64 bits, got a number that does not fit"),
    (b'{"a":1,"s":17}', "data: /s must be a text, got a number"),
    (b'{"a":1,"s":"\\ud800"}', "data: /s must be a text, got half of a character"),
    (b'{"a":1,"l":[1,true]}', "data: /l/* must be a number, got a boolean at /l/1"),
    (b'{"a":1,"l":[1e400]}', "data: /l/* must be a number, got a number that does not fit at /l/0"),
    (b'{"a":1,"m":{"x/y":1}}', "data: /m/* must be a text, got a number at /m/x~1y"),
    (b'{"a":1,"m":{"x":"","x":""}}', "data: /m must have each member once, got one of them twice"),
    (b'{"a":1,"d":1.001}', "data: /d must be a decimal of DECIMAL(5,2), got a number that does not fit"),
    (b'{"a":1,"d":1000}', "data: /d must be a decimal of DECIMAL(5,2), got a number that does not fit"),
    (
        b'{"a":1,"t":"2024-01-01T00:00:00.0000001Z"}',
        "data: /t must be a time with an offset, to the microsecond, got another text",
    ),
    (b'{"a":1,"y":"20240101"}', "data: /y must be a date, got another text"),
    (b'{"a":1,"x":"QQ"}', "data: /x must be base64, got another text"),
]
SMALL = Shape(
    "STRUCT",
    members=(
        Member("a", Shape("BIGINT"), required=True),
        Member("s", Shape("STRING")),
        Member("l", Shape("ARRAY", item=Shape("DOUBLE"))),
        Member("m", Shape("MAP", item=Shape("STRING"))),
        Member("d", Shape("DECIMAL(5,2)")),
        Member("t", Shape("TIMESTAMP")),
        Member("y", Shape("DATE")),
        Member("x", Shape("BINARY")),
    ),
)

NO_NUMBERS = (
    " 1",
    "1 ",
    "1_0",
    "\u0661",
    "+1",
    ".5",
    "00.5",
    "1.",
    "0x1",
    "NaN",
    "Infinity",
    "",
    "-",
    "1e",
    "\uff11",
)
NUMBERS = ("1.5", "-0.5", "1e1", "1.50E+0", "0", "-0")
FLOATS = ("1e39", "-1e39", "3.4028235677973366e38", "1e400", "9" * 4_001)


@each("text", NO_NUMBERS)
def test_decimals_are_numbers_of_json(text: str) -> None:
    """A text is a decimal only if it is written as a number of JSON is, which is what all readers accept."""
    reason = check_json(json.dumps({"a": 1, "d": text}).encode(), SMALL).reason
    assert reason == "data: /d must be a decimal of DECIMAL(5,2), got another text"


@each("text", NUMBERS)
def test_decimals_of_texts_and_numbers_are_equal(text: str) -> None:
    """A number is read from a text as from a number."""
    texts = [check_json(f'{{"a":1,"d":{form}}}'.encode(), SMALL).payload for form in (text, f'"{text}"')]
    assert texts[0] == texts[1] is not None


@each("number", FLOATS)
def test_numbers_that_are_infinite_do_not_fit(number: str) -> None:
    """Each type of numbers has the bound of its own bits."""
    shape = Shape("STRUCT", members=(Member("f", Shape("FLOAT")), Member("d", Shape("DOUBLE"))))
    reason = check_json(f'{{"f":{number}}}'.encode(), shape).reason
    assert reason == "data: /f must be a number of 32 bits, got a number that does not fit"
    payload = check_json(f'{{"d":{number}}}'.encode(), shape).payload
    assert (payload is None) == (float(number) == float("inf"))


def test_numbers_that_are_close_to_infinite_fit() -> None:
    """The largest number, and what is rounded to it, fits; a number that is too small is 0."""
    shape = Shape("STRUCT", members=(Member("f", Shape("FLOAT")),))
    for text, written in (("3.4028235677973362e38", b"3.4028235677973362e+38"), ("1e-999", b"0.0")):
        found = check_json(f'{{"f":{text}}}'.encode(), shape).payload or b""
        assert float(found[5:-1]) == float(written)


def test_times_are_of_the_years_of_python() -> None:
    """In UTC a time has a year from 1 to 9999: later ones make whole columns unreadable for pyarrow."""
    for text in ("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", "10000-01-01T00:00:00Z"):
        reason = check_json(json.dumps({"a": 1, "t": text}).encode(), SMALL).reason or ""
        assert reason.endswith("a time with an offset, to the microsecond, got another text"), text
    for text in ("9999-12-31T23:59:59+01:00", "0001-01-01T00:00:00-01:00", "9999-12-31T23:59:59.999999Z"):
        assert check_json(json.dumps({"a": 1, "t": text}).encode(), SMALL).payload, text


def test_times_are_of_rfc_3339() -> None:
    """Hours and minutes, also of an offset, have the digits of a clock, by each version of Python."""
    for text in ("00:00:00+00:60", "00:00:00+00:99", "00:00:00-24:00", "24:00:00Z", "00:60:00Z", "00:00:60Z"):
        reason = check_json(f'{{"a":1,"t":"2024-01-01T{text}"}}'.encode(), SMALL).reason or ""
        assert reason.endswith("a time with an offset, to the microsecond, got another text"), text
    for text in ("00:00:00+23:59", "23:59:59-09:30", "20:10:40Z"):
        assert check_json(f'{{"a":1,"t":"2024-01-01T{text}"}}'.encode(), SMALL).payload, text


def test_names_that_no_parser_reads_are_misfits() -> None:
    """A key of a map has at most 50,000 characters; names that the schema does not have are of any length."""
    name = "x" * 50_001
    assert check_json(f'{{"a":1,"{name}":1}}'.encode(), SMALL).payload == b'{"a":1}'
    assert check_json(f'{{"a":1,"m":{{"{name}":""}}}}'.encode(), SMALL).reason == (
        "data: /m must have names of at most 50000 characters, got a longer one"
    )
    assert check_json(f'{{"a":1,"m":{{"{name[1:]}":""}}}}'.encode(), SMALL).payload


def test_a_reason_is_a_short_text_for_any_key() -> None:
    """Keys of maps come from the payload: half of a character, or of any length."""
    half = check_json(b'{"a":1,"m":{"\\ud800":1}}', SMALL).reason or ""
    assert half == "data: /m/* must be a text, got a number at '/m/\\ud800'"
    long = check_json(b'{"a":1,"m":{"' + b"k" * 49_000 + b'":1}}', SMALL).reason or ""
    assert len(long) < 300


@each(("payload", "reason"), MISFITS)
def test_each_misfit_has_a_reason_with_its_place(payload: bytes | None, reason: str) -> None:
    """The reason says where the data does not fit, and why, without the data."""
    assert check_json(payload, SMALL) == (None, reason)


def test_what_fits_is_written_for_spark() -> None:
    """Members that the schema does not have are dropped, and numbers and times have one form."""
    payload = (
        b' {"a": 1.0, "s": "\\u00e4", "d": "1e1", "t": "2024-01-01t02:00:00.10+02:00", "more": [{"a": 1}]} '
    )
    assert check_json(payload, SMALL).payload == (
        '{"a":1,"s":"ä","d":10,"t":"2024-01-01T00:00:00.100000Z"}'.encode()
    )


def test_deep_values_are_refused() -> None:
    """Nesting beyond the parser is a misfit, not an error of the job."""
    reason = check_json(b'{"a":1,"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}", SMALL).reason
    assert reason == "data: it must be one JSON text, got values that are nested too deep"


def test_rescue() -> None:
    """With rescue, what does not fit and what the schema does not have is kept as it was."""
    payload = b'{"a":"x","l":[1],"m":{"k":1e400},"more":{"b":1.50}}'
    assert check_json(payload, SMALL, rescue=True).payload == (
        b'{"a":null,"l":[1.0],"m":null,'
        b'"_rescued":"{\\"/a\\":\\"x\\",\\"/m\\":{\\"k\\":1e400},\\"/more\\":{\\"b\\":1.50}}"}'
    )
    assert check_json(b'{"l":[]}', SMALL, rescue=True).reason == MISFITS[6][1]
    assert check_json(b'{"a":1', SMALL, rescue=True).reason is not None


def _is_valid(payload: bytes) -> bool:
    """Return whether jsonschema and the standard library find a payload right, in what both can say."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) > len(dict(pairs)):
            raise ValueError("a member twice")
        return dict(pairs)

    value = json.loads(payload.decode(), object_pairs_hook=once)
    jsonschema.Draft202012Validator(EVERY_TYPE).validate(value)
    return True


@examples(400)
@given(json_payloads(EVERY_TYPE))
def test_what_jsonschema_refuses_is_a_misfit(payload: bytes) -> None:
    """Data that is invalid by its JSON Schema does not fit, and misfits are invalid or beyond a type."""
    valid = False
    with suppress(ValueError, jsonschema.ValidationError, RecursionError):
        valid = _is_valid(payload)
    checked = check_json(payload, SHAPE)
    if not valid:
        assert checked.reason is not None
    elif checked.reason is not None:  # what jsonschema does not check: ranges and formats
        assert checked.reason.endswith(("that does not fit", "another text", "half of a character"))
    else:
        assert check_json(checked.payload, SHAPE) == checked  # and is written in one form


@examples(600)
@given(avro_payloads())
def test_avro_is_read_as_by_fastavro(payload: bytes) -> None:
    """A datum fits if, and only if, fastavro reads it to its last byte."""
    fits = False
    with suppress(Exception):
        value = read_avro(payload)
        has_ints = all(-(2**31) <= each < 2**31 for each in value["list"])  # fastavro has no bound
        fits = has_ints and avro_of(value) == payload
    checked = AvroChecks(PARSED).check(payload)
    if fits:
        assert checked.payload == payload
    elif checked.reason is None:  # another encoding of the same value, such as a long number
        assert avro_of(read_avro(payload)) != payload


def test_places_in_avro() -> None:
    """The reason names the field."""
    value = {"text": "a", "count": 1, "flag": True, "share": 1.0, "maybe": None, "kind": "NEW", "raw": b""}
    value |= {"four": b"1234", "list": [], "map": {}, "nested": {"name": "b"}}
    payload = avro_of(value)
    assert AvroChecks(PARSED).check(payload) == (payload, None)
    assert AvroChecks(PARSED).check(payload + b"x").reason == (
        "data: /nested/name must be of the schema, got wrong data: bytes follow its end"
    )
    assert AvroChecks(PARSED).check(payload[:-1]).reason == (
        "data: /nested/name must be of the schema, got wrong data: a length beyond its end"
    )
    assert AvroChecks(PARSED).check(None).reason == "data: it must be one datum of Avro, got no data"
    assert AVRO["name"] == "Order"
