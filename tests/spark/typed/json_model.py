"""A model of JSON by a shape: what a payload must be in Spark, and random payloads, many of them hostile."""

from __future__ import annotations

import base64
import json
import random
import re
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any, Final

from cloudevents_kafka.spark.typed.shape import BY_NAME, Member, Shape

_NAMES: Final = ("a", "b", "größe", "x.y", "a b", "Zz", "long_name_of_a_member", "_rescued2")
_SCALARS: Final = [name for name in BY_NAME if name not in ("ARRAY", "MAP", "STRUCT", "DECIMAL(38,18)")]
_BITS: Final = {"BIGINT": 64, "INT": 32, "SMALLINT": 16, "TINYINT": 8}
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|([-+])([0-9]{2}):([0-9]{2}))?"
)
_MANY: Final = 1_001
_WIDE: Final = Context(prec=5_000)
_LONGEST_NAME: Final = 50_000
_LONGEST_NUMBER: Final = 4_000

NUMBERS: Final = (
    *("0", "-0", "1", "-1", "127", "128", "-128", "-129", "32767", "32768", "2147483647", "-2147483649"),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "1.0",
        "1.5",
        "-2.50",
        "1e2",
        "1E-2",
    ),
    *(
        "1e39",
        "3.4028234e38",
        "3.5e38",
        "-1e39",
        "1e308",
        "1e400",
        "-1e400",
        "1e-50",
        "4.9e-324",
        "1e-999",
        "0e999",
    ),
    *(
        "0.1",
        "16777217",
        "123456789.123456789",
        "9" * 19,
        "9" * 38,
        "9" * 39,
        "1e25",
        "1e26",
        "12.340",
        "99.995",
    ),
    *("01", "+1", ".5", "1.", "--1", "1e", "0x1", "NaN", "Infinity", "-Infinity", "1_0", "\u0661"),
)
_HUGE: Final = ("1" * _MANY, "0." + "1" * _MANY, "1e" + "9" * _MANY, "-" + "1" * 5_000)
TEXTS: Final = (
    *(
        '""',
        '"a"',
        '"\\u00e9"',
        '"\\ud800"',
        '"\\udc00x"',
        '"\\ud83d\\ude00"',
        '"é😀"',
        '"\\u0000"',
        '"\x7f"',
    ),
    *(
        '"\\""',
        '"\\/"',
        '"\x01"',
        '"\\x"',
        '"\\u12"',
        '"unclosed',
        "'a'",
        '"new"',
        '"NEW"',
        '" "',
        '"null"',
        '"1"',
    ),
)
TIMES: Final = (
    *(
        "2024-02-29T23:59:59Z",
        "2023-02-29T00:00:00Z",
        "2024-01-01T00:00:00.123456+01:00",
        "2024-01-01t00:00:00z",
    ),
    *("2024-01-01T00:00:00.1234567Z", "2024-01-01T00:00:00.1234560Z", "9999-12-31T23:59:59-01:00"),
    *(
        "9999-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "0000-01-01T00:00:00Z",
    ),
    *(
        "2016-12-31T23:59:60Z",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:00:00+23:59",
        "2024-01-01T00:00:00-18:30",
    ),
    *(
        "2024-01-01T00:00:00",
        "2024-01-01 00:00:00Z",
        "2024-1-1T00:00:00Z",
        "2024-01-01T00:00Z",
        "+2024-01-01T00:00:00Z",
    ),
    *(
        "2024-01-01T00:00:00+0100",
        "1582-10-10T00:00:00Z",
        "1900-01-01T00:00:00.5",
        "2024-01-01T00:00:00+00:60",
        "2024-01-01T00:00:00-24:00",
    ),
    *(
        "2024-01-01",
        "1582-10-10",
        "0001-01-01",
        "9999-12-31",
        "10000-01-01",
        "2024-02-30",
        "20240101",
        "2024-W01-1",
    ),
)
BASE64: Final = ("QQ==", "QQ", "QR==", "QUJD", "!!!!", "QQ==\\n", "Q Q=", "_-==", "é", "====", "QQ==QQ==")
OTHERS: Final = (
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[1]",
    '{"a":1}',
    "nul",
    "True",
    "",
    "[",
    "]",
    "[1,]",
    '{"a"}',
)


class Misfit(Exception):
    """A payload has no value."""


# --- what a payload is -----------------------------------------------------------


class _Number(str):
    """The text of a number."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, in their order."""


def expected(shape: Shape, payload: bytes) -> Any:
    """Return the value of a payload as pyarrow returns it, or None for a misfit."""
    try:
        text = payload.decode()
        return value_of(shape, json.loads(text, **_HOOKS))
    except (ValueError, RecursionError, Misfit):
        return None


def _refuse(name: str) -> Any:
    raise Misfit(name)


_HOOKS: Final[dict[str, Any]] = {
    "object_pairs_hook": _Pairs,
    "parse_int": _Number,
    "parse_float": _Number,
    "parse_constant": _refuse,
}


def value_of(shape: Shape, value: Any) -> Any:
    """Return a value of the model; raise `Misfit`."""
    if value is None and shape.nullable:
        return None
    if shape.spark == "STRUCT":
        return _struct(shape, value)
    if shape.item is not None:
        return _collection(shape, shape.item, value)
    return _SCALAR[shape.spark.partition("(")[0]](shape, value)


def _struct(shape: Shape, value: Any) -> dict[str, Any]:
    _must(isinstance(value, _Pairs))
    names = [name for name, _ in value]
    known = {member.name for member in shape.members}
    _must(not shape.closed or set(names) <= known)
    found = {}
    for member in shape.members:
        each = [one for name, one in value if name == member.name]
        _must(len(each) <= 1 and (bool(each) or not member.required))
        found[member.name] = value_of(member.shape, each[0]) if each else None
    return found


def _collection(shape: Shape, item: Shape, value: Any) -> Any:
    if shape.spark == "ARRAY":
        _must(type(value) is list)
        return [value_of(item, each) for each in value]
    _must(isinstance(value, _Pairs) and len({name for name, _ in value}) == len(value))
    _must(all(len(name) <= _LONGEST_NAME and not _has_surrogate(name) for name, _ in value))
    return {name: value_of(item, each) for name, each in value}


def _must(true: bool) -> None:  # noqa: FBT001  # it has no other argument
    if not true:
        raise Misfit


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= sign <= "\udfff" for sign in text)


def _text(value: Any) -> str:
    _must(type(value) is str)
    return str(value)


def _number(value: Any, *, or_text: bool = False) -> str:
    _must(type(value) is _Number or (or_text and type(value) is str))
    _must(_NUMBER.fullmatch(value) is not None and len(value) <= _LONGEST_NUMBER)
    return str(value)


def _exact(text: str) -> Decimal:
    exponent = text.lower().partition("e")[2]
    _must(len(exponent) < 18)
    return Decimal(text) or Decimal(0)


def _integer(shape: Shape, value: Any) -> int:
    number = _exact(_number(value))
    _must(number.adjusted() < 20)
    half = 2 ** (_BITS[shape.spark] - 1)
    _must(number == number.to_integral_value() and -half <= number < half)
    return int(number)


def _real(shape: Shape, value: Any) -> float:
    number = float(_number(value))
    try:
        rounded: float = struct.unpack("f", struct.pack("f", number))[0] if shape.spark == "FLOAT" else number
    except OverflowError:
        raise Misfit from None
    _must(abs(rounded) != float("inf"))
    return rounded


def _decimal(shape: Shape, value: Any) -> Decimal:
    precision, scale = shape.decimal() or (0, 0)
    number = _exact(_number(value, or_text=True))
    _must(number == 0 or -scale <= number.adjusted() < precision - scale)
    _must(number == 0 or number == number.quantize(Decimal(1).scaleb(-scale), context=_WIDE))
    return number.quantize(Decimal(1).scaleb(-scale), context=_WIDE) if number else Decimal((0, (0,), -scale))


def _string(shape: Shape, value: Any) -> str:
    text = _text(value)
    _must(not _has_surrogate(text) and (not shape.values or text in shape.values))
    return text


def _time(shape: Shape, value: Any) -> datetime:
    match = _TIME.fullmatch(_text(value))
    has_offset = shape.spark == "TIMESTAMP"
    if match is None or (match[6] is not None) != has_offset:
        raise Misfit
    day, *clock, fraction, _, sign, hours, minutes = match.groups(default="0")
    _must(not fraction[6:].strip("0") and int(hours) < 24 and int(minutes) < 60)
    micros = int(fraction[:6].ljust(6, "0"))
    found = datetime.combine(date.fromisoformat(day), time(*map(int, clock), micros))  # or a misfit
    if not has_offset:
        return found
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        return (found + offset if sign == "-" else found - offset).replace(tzinfo=UTC)
    except OverflowError:
        raise Misfit from None


def _date(_: Shape, value: Any) -> date:
    text = _text(value)
    _must(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None)
    return date.fromisoformat(text)  # a ValueError is a misfit


def _binary(_: Shape, value: Any) -> bytes:
    return base64.b64decode(_text(value).encode("ascii"), validate=True)


def _boolean(_: Shape, value: Any) -> bool:
    _must(type(value) is bool)
    return bool(value)


_SCALAR: Final[dict[str, Any]] = {
    **dict.fromkeys(_BITS, _integer),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _real),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_NTZ"), _time),
    "DECIMAL": _decimal,
    "STRING": _string,
    "DATE": _date,
    "BINARY": _binary,
    "BOOLEAN": _boolean,
}


# --- random schemas and payloads ---------------------------------------------------


def random_shape(chance: random.Random, depth: int = 3) -> Shape:
    """Return the shape of an object."""
    names = chance.sample(_NAMES, chance.randint(1, 5))
    members = tuple(Member(name, _shape(chance, depth - 1), chance.random() < 0.4) for name in names)
    nullable = depth < 3 and chance.random() < 0.3
    return Shape("STRUCT", nullable, None, members, closed=chance.random() < 0.1)


def _shape(chance: random.Random, depth: int) -> Shape:
    nullable = chance.random() < 0.4
    kind = chance.choice(["ARRAY", "MAP", "STRUCT", *["scalar"] * 5]) if depth else "scalar"
    if kind == "STRUCT":
        return random_shape(chance, depth)
    if kind != "scalar":
        return Shape(kind, nullable, _shape(chance, depth - 1))
    spark = chance.choice([*_SCALARS, "DECIMAL", "DECIMAL", "enum"])
    if spark == "enum":
        return Shape("STRING", nullable, values=("new", "used", ""))
    if spark == "DECIMAL":
        precision = chance.choice([1, 5, 10, 19, 38])
        spark = f"DECIMAL({precision},{chance.randint(0, precision)})"
    return Shape(spark, nullable)


def random_payload(chance: random.Random, shape: Shape) -> bytes:
    """Return a text of which about half fit; few have names, numbers or levels beyond those of any parser."""
    payload = _text_of(chance, shape, hostile=chance.choice([0.0, 0.0, 0.05, 0.3])).encode(
        "utf-8", "surrogatepass"
    )
    change = chance.randint(0, 24)
    at = chance.randint(0, len(payload))
    if change == 0:
        return payload[:at]
    if change == 1:
        return (
            payload[:at]
            + chance.choice([b"\xff", b"1", b'"', b"\\", b"0", b"{", b"\x00", b",", b" "])
            + payload[at:]
        )
    if change == 2:
        return payload + chance.choice([b"x", b"{}", b",", b"}", b"\x00", b" \n", b"\xef\xbb\xbf"])
    return payload


def _text_of(chance: random.Random, shape: Shape, hostile: float) -> str:
    if chance.random() < hostile:
        return chance.choice([*NUMBERS, *TEXTS, *map(_quoted, TIMES), *OTHERS])
    if shape.nullable and chance.random() < 0.15:
        return "null"
    space = chance.choice(["", "", " ", "\n\t"])
    if shape.spark == "STRUCT":
        return _object_of(chance, shape, hostile, space)
    if shape.item is None:
        return _scalar_of(chance, shape)
    texts = [_text_of(chance, shape.item, hostile) for _ in range(chance.randint(0, 3))]
    if shape.spark == "ARRAY":
        return f"[{space}{f'{space},'.join(texts)}{space}]"
    names = chance.sample(["k", "ä", "\\u00e4", "", "k2", "\\ud83d\\ude00"], len(texts))
    if texts and chance.random() < hostile:
        names[0] = chance.choice(["\\ud800", "k", "x" * (_LONGEST_NAME + chance.randint(0, 1)), "y" * 10_001])
    return (
        f"{{{','.join(f'{_quoted(name)}{space}:{text}' for name, text in zip(names, texts, strict=True))}}}"
    )


def _object_of(chance: random.Random, shape: Shape, hostile: float, space: str) -> str:
    members = [
        (member.name, _text_of(chance, member.shape, hostile))
        for member in shape.members
        if member.required or chance.random() < 0.8
    ]
    if chance.random() < hostile and members:
        members.append(chance.choice(members))
    if chance.random() < 0.3:
        members.append((chance.choice(["more", "\\u006dore", "A", ""]), _unknown(chance, hostile)))
    if chance.random() < hostile / 10:
        members.append(("n" * (_LONGEST_NAME + 2), "1"))
    chance.shuffle(members)
    texts = (f"{_quoted(name)}{space}:{space}{text}" for name, text in members)
    return f"{{{space}{f'{space},{space}'.join(texts)}{space}}}"


def _unknown(chance: random.Random, hostile: float) -> str:
    """Return a value that no schema has."""
    if chance.random() < hostile / 3:
        levels = chance.choice([30, 400, 5_000])
        return chance.choice([*_HUGE, "[" * levels + "]" * levels, '{"' + "x" * (_LONGEST_NAME + 2) + '":1}'])
    return chance.choice([*NUMBERS[:40], *TEXTS[:9], "null", "true", '[{"a":[1,{}]}]', '{"a":"b","a":1}'])


def _scalar_of(chance: random.Random, shape: Shape) -> str:  # noqa: PLR0911  # a case for each kind
    if shape.values:
        return _quoted(chance.choice(shape.values))
    kind = shape.spark.partition("(")[0]
    if kind in _BITS:
        half = 2 ** (_BITS[kind] - 1)
        return str(chance.choice([0, -1, half - 1, -half, chance.randint(-half, half - 1), half]))
    if kind in ("FLOAT", "DOUBLE"):
        return chance.choice(
            [repr(chance.random()), repr(chance.uniform(-1e6, 1e6)), chance.choice(NUMBERS[:36])]
        )
    if kind == "DECIMAL":
        precision, scale = shape.decimal() or (0, 0)
        number = Decimal(chance.randint(-(10**precision), 10**precision)).scaleb(-scale)
        text = f"{number:f}"
        return text if chance.random() < 0.5 else _quoted(text)
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return _quoted(_time_of(chance, offset=kind == "TIMESTAMP"))
    if kind == "DATE":
        return _quoted(date.fromordinal(chance.randint(1, date.max.toordinal())).isoformat())
    if kind == "BINARY":
        return _quoted(
            chance.choice([base64.b64encode(chance.randbytes(chance.randint(0, 5))).decode(), *BASE64])
        )
    return chance.choice(["true", "false"]) if kind == "BOOLEAN" else chance.choice(TEXTS[:10])


def _time_of(chance: random.Random, *, offset: bool) -> str:
    if chance.random() < 0.2:
        return chance.choice(TIMES)
    micros = chance.randint(-(10**16), 10**17)
    try:
        time = datetime.fromtimestamp(micros // 10**6, UTC).replace(microsecond=micros % 10**6, tzinfo=None)
    except (ValueError, OverflowError):
        return "1970-01-01T00:00:00Z"
    hours = chance.choice(["Z", "+00:00", "-00:00", "+05:30", "-13:59", "+14:00", "-18:00"])
    return time.isoformat() + (hours if offset else "")


def _quoted(text: str) -> str:
    return f'"{text}"'
