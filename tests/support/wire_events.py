"""Random values of the binary event formats, byte by byte: with attributes that their writers refuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from cloudevents_kafka.primitives import varint, zigzag

NAMES: Final = (
    *("time", "subject", "dataschema", "datacontenttype", "data", "x", "my-ext", "myext", "Subject", "TIME"),
    *("data_schema", "expirytime", "recordedtime", "sampledrate", "deprecated", "sequence", "partitionkey"),
    *("é", ""),
)
_TEXTS: Final = (
    *("", "a", "noon", "2018-04-05 17:31:00Z", "2018-04-05T17:31:00Z", "a\nb", "\x7f", "text/plain", '"x"'),
    *("a/b; charset=none", "#", "urn:x", "5", "True", "\ufdd0", "x" * 300),
)
_BYTES: Final = (b"", b"\xff", b"ab")
_NUMBERS: Final = (0, 1, -1, 5, 2**31 - 1, -(2**31), 2**31, 2**40, -(2**62))
_SECONDS: Final = (0, 1522949460, 10**15, -(10**15), 2**63 - 1, -62135596800)
_NANOS: Final = (0, 5, 999999999, 10**9, -1)
_TEXT_DATA: Final = (b'{"a":1}', "ä".encode(), b"", b"17")


def wire_event(name: str, luck: random.Random) -> bytes:
    """Return a value of the format ``name``, whose required attributes are right."""
    return _WRITERS[name](luck)


def _some(luck: random.Random) -> list[str]:
    return luck.sample(NAMES, luck.choice((0, 1, 1, 2, 3)))


def _text(luck: random.Random) -> bytes:
    return luck.choice(_TEXTS).encode()


# --- Protobuf: a tag before each field ---


def _field(number: int, content: bytes) -> bytes:
    return varint.encode(number << 3 | 2) + varint.encode(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return varint.encode(number << 3) + varint.encode(value % 2**64)


def _attr(luck: random.Random) -> bytes:
    """Return fields of the oneof ``attr``: one of any type, rarely none or one next to an unknown field."""
    kind = luck.choice((0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 7, 8))
    if kind == 0:
        return b""
    if kind == 1:
        return _number(1, luck.choice((0, 1)))
    if kind == 2:
        return _number(2, luck.choice(_NUMBERS))
    if kind == 4:
        return _field(4, luck.choice(_BYTES))
    if kind == 7:
        return _field(7, _number(1, luck.choice(_SECONDS)) + _number(2, luck.choice(_NANOS)))
    return _field(15, b"unknown") + _field(3, _text(luck)) if kind == 8 else _field(kind, _text(luck))


def _protobuf(luck: random.Random) -> bytes:
    required = [_field(number, text) for number, text in enumerate((b"1", b"/s", b"1.0", b"t"), 1)]
    entries = [_field(5, _field(1, name.encode()) + _field(2, _attr(luck))) for name in _some(luck)]
    data = luck.choice((b"", _field(6, b"\xff"), _field(7, luck.choice(_TEXT_DATA))))
    unknown = _field(15, b"unknown") if luck.random() < 0.2 else b""
    return b"".join([*required, *entries, data, unknown])


# --- Avro: the index of a branch before each value of a union ---


def _sized(content: bytes) -> bytes:
    return zigzag.encode(len(content)) + content


def _map(entries: list[tuple[str, bytes]]) -> bytes:
    block = b"".join(_sized(name.encode()) + value for name, value in entries)
    return (zigzag.encode(len(entries)) + block if entries else b"") + b"\x00"


def _value(luck: random.Random, kinds: tuple[str, ...]) -> bytes:
    """Return a value of a union that has these branches."""
    kind = luck.choice((*kinds, "text", "text"))
    values = {
        "null": b"",
        "boolean": bytes([luck.choice((0, 1))]),
        "number": zigzag.encode(luck.choice(_NUMBERS)),
        "time": zigzag.encode(luck.choice(_SECONDS)),
        "text": _sized(_text(luck)),
        "bytes": _sized(luck.choice(_BYTES)),
    }
    return zigzag.encode(kinds.index(kind)) + values[kind]


def _avro(luck: random.Random) -> bytes:
    required = {"specversion": b"1.0", "id": b"1", "source": b"/s", "type": b"t"}
    entries = [(name, zigzag.encode(3) + _sized(text)) for name, text in required.items()]
    kinds = ("null", "boolean", "number", "text", "bytes")
    entries += [(name, _value(luck, kinds)) for name in _some(luck)]
    luck.shuffle(entries)
    data = luck.choice((b"\x02", b"\x00" + _sized(b"\xff"), b"\x0c" + _sized(luck.choice(_TEXT_DATA))))
    return _map(entries) + data


def _avro_compact(luck: random.Random) -> bytes:
    core = ("time", "subject", "dataschema", "datacontenttype")
    texts = [b"\x00" if luck.random() < 0.6 else b"\x02" + _sized(_text(luck)) for _ in core[1:]]
    micros = luck.choice((b"\x00", b"\x02" + zigzag.encode(luck.choice(_SECONDS))))
    kinds = ("boolean", "number", "time", "text", "bytes")
    entries = [(name, _value(luck, kinds)) for name in _some(luck) if name not in core]
    data = luck.choice((b"\x02", b"\x00" + _sized(b"\xff")))
    return b"".join([_sized(b"1"), _sized(b"/s"), _sized(b"t"), *texts, micros, _map(entries), data])


_WRITERS: Final[dict[str, Callable[[random.Random], bytes]]] = {
    "protobuf": _protobuf,
    "avro": _avro,
    "avro-compact": _avro_compact,
}
