"""Random records, valid and deviating, in both modes and all formats, for the law of forwarding."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from cloudevents_kafka import EncodeError, Record
from cloudevents_kafka.attributes.types import canonical_text
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import unchecked_event
from cloudevents_kafka.formats.registry import find
from tests.support.wire_events import wire_event

_REQUIRED: Final = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed"}
_OPTIONAL: Final[dict[str, tuple[Any, ...]]] = {
    "subject": ("s", "", "a\nb", 17),
    "time": (
        "2018-04-05T17:31:00Z",
        "2023-01-25T19:07:06.370582GMT",
        "2018-04-05 17:31:00Z",
        "",
        1576245885912,
    ),
    "dataschema": ("urn:x", "#", "rel"),
    "datacontenttype": ("application/json", "text/plain", "xyz", "", "text/plain; charset=none"),
    "partitionkey": ("k", "", 5),
    "sampledrate": (5, "5", 0, "x"),
    "deprecated": (True, "True", "x"),
    "my_ext": ("v", "w"),
    "my-ext": ("v", "w"),
    "myext": ("v", "w"),
    "tabular-id": ("550e8400",),
    "myExt": ("v", 1.5, [1], {"a": [1, 2]}),
    "data_schema": ("urn:y",),
    "é": ("v",),
    "sentms": (1767607200000, "5"),
    "Subject": ("s", "other"),
}
_DATA: Final = (None, b'{"n": 1}', b'"x"', b"null", b"1.50", b"text")
_FOREIGN: Final = (
    ("trace", b"\xff"),
    ("note", None),
    ("trace", b"1"),
    ("traceparent", b"00"),
    ("x-ce", b"1"),
)
_JSON: Final = b"application/cloudevents+json"
_LABELS: Final[tuple[list[tuple[str, bytes | None]], ...]] = (
    [("content-type", _JSON)],
    [("content-type", _JSON)],
    [],
    [("content-type", b"application/json")],
    [("content-type", b"text/plain")],
    [("Content-Type", _JSON)],
    [("content-type", b'"application/cloudevents+json"')],
    [("content-type", b" application/cloudevents+json; charset=utf-8")],
    [("content-type", _JSON), ("content-type", _JSON)],
    [("ce_datacontenttype", _JSON)],
    [("content-type", _JSON), ("ce_id", b"2"), ("ce_x", b"3")],
)


def deviating_records(count: int, seed: int) -> Iterator[Record]:
    """Yield random records; most are events, strictly or leniently."""
    luck = random.Random(seed)
    while count:
        make = luck.choice((_binary, _binary, _json, _json, _other))
        record = make(luck)
        if record is not None:
            count -= 1
            yield msgspec.structs.replace(record, key=luck.choice((None, b"", b"k", b"\xff")))


def _attributes(luck: random.Random) -> dict[str, Any]:
    names = luck.sample([*_OPTIONAL], luck.choice((0, 1, 1, 2, 3, 5)))
    return {**_REQUIRED, **{name: luck.choice(_OPTIONAL[name]) for name in names}}


def _mixed(luck: random.Random, headers: list[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    headers = [*headers, *luck.sample(_FOREIGN, luck.choice((0, 0, 1, 2)))]
    return luck.sample(headers, len(headers)) if luck.random() < 0.3 else headers


def _binary(luck: random.Random) -> Record:
    headers: list[tuple[str, bytes | None]] = []
    quoted = luck.random() < 0.05
    for name, value in _attributes(luck).items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        header = "content-type" if name == "datacontenttype" else f"ce_{name}"
        if luck.random() < 0.05:
            header = luck.choice((header.upper(), header.replace("ce_", "ce-", 1), header.title()))
        headers.append((header, msgspec.json.encode(text) if quoted else text.encode()))
        if luck.random() < 0.04:
            headers.append((header, luck.choice((b"again", b"\xff", None, text.encode()))))
    if luck.random() < 0.1:
        headers.append(("ce_datacontenttype", luck.choice((b"application/json", b"a/b"))))
    if luck.random() < 0.1:
        headers.append(luck.choice((("ce_bytes", b"\xff"), ("ce_gone", None), ("CE_OTHER", b"1"))))
    return Record(value=luck.choice(_DATA), headers=_mixed(luck, headers))


def _json(luck: random.Random) -> Record:
    members = [(name, msgspec.json.encode(value)) for name, value in _attributes(luck).items()]
    if luck.random() < 0.1:
        members.append(
            (luck.choice(("subject", "myext", "time")), luck.choice((b'"again"', b"null", b"1.5")))
        )
    data = luck.choice(_DATA)
    if data is not None and data != b"text":
        members.append(("data", data))
    elif data is not None:
        members.append(("data_base64", b'"/w=="'))
    colon, comma = luck.choice(((b":", b","), (b": ", b", "), (b" :\n", b" ,\n")))
    if luck.random() < 0.2:
        luck.shuffle(members)
    texts = [msgspec.json.encode(name) + colon + text for name, text in members]
    value = b"{" + comma.join(texts) + b"}"
    if luck.random() < 0.03:
        value = b"\xef\xbb\xbf" + value
    return Record(value=value, headers=_mixed(luck, luck.choice(_LABELS)))


def _other(luck: random.Random) -> Record | None:
    name = luck.choice(("avro", "avro-compact", "protobuf"))
    header = luck.choice(("content-type", "content-type", "Content-Type"))
    headers: list[tuple[str, bytes | None]] = [(header, f"application/cloudevents+{name}".encode())]
    if luck.random() < 0.5:
        return Record(value=wire_event(name, luck), headers=_mixed(luck, headers))
    given = {key: value for key, value in _attributes(luck).items() if isinstance(value, str | int | bool)}
    if isinstance(given.get("sentms"), int):
        del given["sentms"]
    texts = {
        key: canonical_text(value) if key in ("subject", "time") else value for key, value in given.items()
    }
    form = find(name)
    data = luck.choice((None, b"\xff", b'{"n":1}'))
    if form is None:
        return None
    try:
        value = form.encode(unchecked_event(texts, data, DataKind.BYTES))
    except (EncodeError, ValueError, TypeError):
        return None
    if name == "protobuf" and luck.random() < 0.3:
        value += b"\x7a\x01x"  # a field that the message does not have
    return Record(value=value, headers=_mixed(luck, headers))
