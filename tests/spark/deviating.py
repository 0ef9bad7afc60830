"""Records that deviate as known producers do, one by one and mixed, with random values."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from conformance.notation import RecordNotation, as_record, convert

from cloudevents_kafka.record import Headers, Record

from .generated import generated
from .records import BASE, JSON_TYPE, TEXTS, TIMES, URIS, binary, structured

_PRODUCERS: Final = Path(__file__).parents[2] / "spec-conformance" / "vectors" / "real-producers.json"
_CONTENT_TYPES: Final = (
    *(None, None, None, b"application/json", b"application/json; charset=utf-8", b"text/plain", b"a/b;c=d"),
    *(b"application/xml", b"", b"xyz", b"\xff", b"application/cloudevents", b"Application/CloudEvents+JSON"),
    *(b"application/cloudevents+xml", b"application/cloudevents-batch+json", b"text/json; charset=latin1"),
    *(b"application/json\x01", b" application/cloudevents+json"),
)
_PREFIXES: Final = ("ce_", "ce-", "CE_", "Ce-", "cloudEvents:", "cloudEvents_", "CLOUDEVENTS:", "x_")
_NAMES: Final = (
    *("tabular-id", "a.b-c", "data_schema", "MY-EXT", "myext", "_", "T-ime", "sentms"),
    *("subject", "partitionkey", "myExt", "my_ext", "", "data", "Data", "DATA_BASE64", "dataSchema", "Time"),
    *(
        "iodebeziumtxId",
        "é",
        "\u212a",
        "deprecated",
        "tracestate",
        "traceparent",
        "sequence",
        "dataregulation",
    ),
    *("opcuametadatamajorversion", "sampledrate", "expirytime", "x", "X", "ID", "dataContentType", "n" * 70),
    *("deprecationfrom", "datacategory", "dataclassification", "severitytext", "bamptxcompleted"),
)
_VALUES: Final[tuple[Any, ...]] = (
    *(
        "",
        "",
        "v",
        '"v"',
        '""',
        '"',
        "True",
        "TRUE",
        "False",
        '"true"',
        '"True"',
        "5",
        '"5"',
        "a b",
        "%",
        "#",
    ),
    *("2018-04-05 17:31:00Z", '"2018-04-05T17:31:00Z"', '"2018-04-05 17:31:00Z"', "2018-04-05  7:31:00Z"),
    *(
        "2023-01-25T19:07:06.370582GMT",
        "2022-01-05T10:00",
        "2022-02-24T13:25:16+0000",
        "1576245885912",
        "a\nb",
    ),
    *(1767607200000, 0.5, -0.0, 1e300, '"1.0"', ' "x"', "text/plain; charset=none"),
    *('"https://spring.io/"', '"a b"', '"urn:x"', "\x7f", "é", 5, True, None, 1.5, 2**31, 10**400),
    *({}, [], {"a": [1, {"b c": "d  e"}]}, [[[1.0, "\n"]], None], {"é": "\x7f"}, [1e300], ["\ud83d\ude00"]),
)


def producers() -> list[tuple[str, Record]]:
    """Return the records of known producers, each with its producer."""
    cases = json.loads(_PRODUCERS.read_text("utf-8"))["cases"]
    return [(case["source"], as_record(convert(case["record"], RecordNotation))) for case in cases]


def deviating(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield random records with some deviations each, most of which are events for lenient reading."""
    luck = random.Random(seed)
    known = [record for _, record in producers()]
    others = generated(count, seed)
    for other in others:
        kind = luck.random()
        if kind < 0.3:
            yield _json(luck)
        elif kind < 0.6:
            yield _binary(luck)
        elif kind < 0.85:
            yield _other_labels(luck.choice(known), luck)
        else:
            yield _other_labels(other, luck)


def _attributes(luck: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {name: value for name, value in BASE.items() if luck.random() < 0.97}
    for _ in range(luck.choice((0, 0, 1, 1, 1, 2, 3))):
        name = luck.choice((*_NAMES, *BASE))
        pool = luck.choice((_VALUES, _VALUES, TIMES if "time" in name else URIS, TEXTS))
        made[name] = luck.choice(pool)
    if luck.random() < 0.3:
        name = luck.choice(tuple(made))
        made[name.upper() if luck.random() < 0.5 else name.capitalize()] = luck.choice(("v", made[name]))
    if luck.random() < 0.1:
        name = luck.choice(("id", "source", "type", "specversion"))
        made[luck.choice((name.upper(), name.capitalize()))] = made.pop(name, "1.0")
    if luck.random() < 0.2:
        made[luck.choice(("source", "time", "subject", "dataschema"))] = luck.choice(_VALUES)
    names = list(made)
    luck.shuffle(names)
    return {name: made[name] for name in names}


def _json(luck: random.Random) -> Record:
    data = luck.choice((b'{"n": 1}', b'{"n": 1}', b"null", b'"text"', b'"\\ud800"', b"5", None))
    style = luck.choice(("compact", "compact", "spaced", "indented"))
    value = structured(_attributes(luck), data, style=style, at=luck.choice((0, 3, 99))).value or b""
    if luck.random() < 0.05:
        value = b"\xef\xbb\xbf" + value
    if luck.random() < 0.05:
        value = value.replace(b"{", b'{"id":"2",', 1)
    if luck.random() < 0.1:
        at = luck.randrange(len(value))
        value = value[:at] + luck.choice((b",", b"\\", b'"', b"\x00", b"\xc3", b" ", b"A")) + value[at + 1 :]
    return Record(value=value, headers=_labels(luck))


def _binary(luck: random.Random) -> Record:
    record = binary(_attributes(luck) if luck.random() < 0.7 else BASE, luck.choice((None, b"{}", b"\xff")))
    one = luck.choice(_PREFIXES[:6])
    headers: Headers = []
    kind = luck.random()
    for name, value in record.headers:
        text = json.dumps(value).encode() if value is not None and not isinstance(value, bytes) else value
        prefix = (
            one if kind < 0.3 else luck.choice(_PREFIXES) if kind < 0.5 and luck.random() < 0.2 else "ce_"
        )
        other = prefix + name[3:] if name.startswith("ce_") else name
        if name == "content-type" and luck.random() < 0.3:
            other = luck.choice(
                ("ce_datacontenttype", prefix + "datacontenttype", "Content-Type", "CONTENT-TYPE")
            )
        headers.append((other, text))
        if luck.random() < 0.02:
            headers.append((luck.choice((name, other)), luck.choice((text, b"x", None))))
    if luck.random() < 0.1:
        headers.append(("ce_datacontenttype", luck.choice((b"application/json", b"a/b", JSON_TYPE, b"\xff"))))
    if luck.random() < 0.1:
        luck.shuffle(headers)
    return Record(value=record.value, headers=headers + _foreign(luck))


def _other_labels(record: Record, luck: random.Random) -> Record:
    """Return a record with other headers that say what it is, or with the same."""
    if luck.random() < 0.5:
        return record
    headers = [(name, value) for name, value in record.headers if name.lower() != "content-type"]
    return Record(value=record.value, headers=headers + _labels(luck))


def _labels(luck: random.Random) -> Headers:
    content_type = JSON_TYPE if luck.random() < 0.3 else luck.choice(_CONTENT_TYPES)
    name = "content-type" if luck.random() < 0.95 else luck.choice(("Content-Type", "ce_datacontenttype"))
    headers: Headers = [] if content_type is None else [(name, content_type)]
    if luck.random() < 0.05:
        headers.append(luck.choice((("content-type", b"application/json"), ("ce-id", b"1"), ("CE_X", None))))
    if luck.random() < 0.05:
        headers += [("ce_id", b"1")] * luck.choice((1, 2))
    return headers + _foreign(luck)


def _foreign(luck: random.Random) -> Headers:
    return [("traceparent", luck.choice((None, b"\xff", b"x")))] * luck.choice((0, 0, 0, 1, 3))
