"""Records to compare Spark with the library: vectors, edge cases, and thousands of small changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.notation import RecordNotation, as_record, convert

from cloudevents_kafka.record import Headers, Record

_VECTORS = Path(__file__).parents[2] / "spec-conformance" / "vectors"
JSON_TYPE = b"application/cloudevents+json"

BASE: dict[str, Any] = {
    "specversion": "1.0",
    "id": "8e23f297-3530",
    "source": "/plants/7/lines/1",
    "type": "com.example.reading.created",
    "subject": "sensor-17",
    "time": "2024-02-29T13:14:15.123456Z",
    "datacontenttype": "application/json",
    "dataschema": "https://schemas.example.com/reading/1",
    "partitionkey": "sensor-17",
    "comexampleext": "value, with = and : in it",
}
DATA = b'{"sensor": "sensor-17","value":1.50,"list":[1,{"a":null}],"text":"a \\"quoted\\" \\n word"}'

URIS = (
    *(
        "#f",
        "//a/p",
        "p",
        "?q",
        "a:",
        ":a",
        "1:b",
        "./1:b",
        "a:b:c",
        "a/b:c",
        "?a:b",
        "a#b#c",
        "x:#a#b",
        "a?b?c#d?e/f",
    ),
    *(
        "http://u:p@h:80/p",
        "u@p",
        "//u@h",
        "http://h:/p",
        "http://h:80",
        "http://h:p/",
        "http://h:1:2/",
        "//:80",
        "////",
    ),
    *(
        "http://[::1]:80/p",
        "//[::1]#f",
        "http://[::1",
        "http://::1]",
        "a:[",
        "a:]",
        "/p?[1]",
        "/p#[",
        "%41:b",
        "a%41",
        "a%4",
    ),
    *("a%", "%zz", "//h%41:1?q", "a+b.c-d:e", "a_b:c", "-a:b", "é:b", "/é"),
)

TEXTS = (
    *(
        "",
        " ",
        "a",
        "é",
        "€",
        "😀",
        "\ufffd",
        "\ufdd0",
        "\ufffe",
        "\U0001ffff",
        "\U0010fffd",
        "\u200d",
        "\xa0",
    ),
    *(
        "\x00",
        "\t",
        "\n",
        "\x1f",
        "\x7f",
        "\x85",
        "\x9f",
        '"',
        "\\",
        "'",
        "=",
        "\x01",
        "a\x01b=c",
        ",",
        ":",
        '":5',
    ),
    *(
        "id",
        "type",
        "data",
        "1.0",
        "0.3",
        "1.0.2",
        "null",
        "true",
        "false",
        "0",
        "-1",
        "5",
        "1e2",
        "2147483648",
    ),
    *("%", "%2", "%20", "%zz", "a b", "<a>", "{a}", "[::1]", "#f", "//h/p", "urn:x:y", "a:b", "1:b", "é:x"),
    *("application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "text/plain"),
    *("application/json; charset=iso-8859-1", "text/plain; charset=utf-16", "application/vnd.a+json", "xyz"),
    *(
        "APPLICATION/JSON",
        "text/xml ; a=b",
        'text/plain; a="b c"',
        "application/cloudevents+json",
        "a/b;",
        "a/b; c",
    ),
    *(
        "application/cloudevents",
        "application/cloudevents-batch+json",
        "application/cloudevents+xml",
        "é/x",
        "a/b;c=d",
    ),
    *(
        "application/cloudevents+avro",
        "application/cloudevents+protobuf",
        "Application/CloudEvents+JSON; Charset=UTF-8",
        "application/CLOUDEVENTS+json",
    ),
    'application/cloudevents+json; charset="utf-8"',
    "application/cloudevents+json; charset=latin1",
    " application/cloudevents+json",
)
TIMES = (
    *(
        "2018-04-05T17:31:00Z",
        "2018-04-05t17:31:00z",
        "2018-04-05 17:31:00Z",
        "2018-04-05T17:31Z",
        "2018-04-05",
    ),
    *("2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00", "2016-12-31T23:58:60Z", "2016-12-31T23:59:60.5Z"),
    *("2018-04-05T17:31:00.1Z", "2018-04-05T17:31:00.123456789Z", "2018-04-05T17:31:00.1234567890123Z"),
    *(
        "2018-04-05T17:31:00.999999999Z",
        "1969-12-31T23:59:59.9999999Z",
        "2018-04-05T17:31:00.Z",
        "2018-04-05T17:31:00,5Z",
    ),
    *(
        "2018-04-05T17:31:00+01:00",
        "2018-04-05T17:31:00-00:00",
        "2018-04-05T17:31:00+18:00",
        "2018-04-05T17:31:00+23:59",
    ),
    *(
        "2018-04-05T17:31:00+25:00",
        "2018-04-05T17:31:00+05",
        "2018-04-05T17:31:00+0500",
        "2018-04-05T17:31:00 Z",
    ),
    *(
        "2018-04-05T24:00:00Z",
        "2018-04-05T23:60:00Z",
        "2018-04-05T23:59:61Z",
        "2018-13-05T00:00:00Z",
        "2018-00-05T00:00:00Z",
    ),
    *(
        "2100-02-29T00:00:00Z",
        "2096-02-29T00:00:00Z",
        "2018-04-31T00:00:00Z",
        "2018-04-00T00:00:00Z",
        "1582-10-10T00:00:00Z",
    ),
    *(
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59-01:00",
    ),
    *(
        "0000-02-29T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "+2018-04-05T17:31:00Z",
        "2018-4-5T17:31:00Z",
        "lunchtime",
        "17:31",
    ),
    *(
        "٢018-04-05T17:31:00Z",
        "2018-04-05T17:31:00Z\n",
        " 2018-04-05T17:31:00Z",
        "2018-04-05T17:31:00UTC",
        "now",
        "epoch",
    ),
    *(
        "1900-01-01T00:00:00+00:19",
        "2018-03-25T02:30:00+01:00",
        "2018-04-05T17:31:00.5+05:30",
        "2199-12-31T23:59:59Z",
    ),
)
EXTENSIONS = (
    *(
        "partitionkey",
        "traceparent",
        "sampledrate",
        "severitynumber",
        "deprecated",
        "expirytime",
        "dataref",
        "sequence",
    ),
    *(
        "dssematerial",
        "deprecationmigration",
        "bamptxcompleted",
        "x",
        "9x",
        "data",
        "datacontenttype",
        "Bad",
        "my_ext",
        "é",
    ),
    *("a" * 64, "a.b", "id2", "data_base64", "ID", "idx", "timex", "specversions"),
)
DATA_TEXTS = (
    *(
        b"null",
        b"true",
        b"false",
        b"0",
        b"-0",
        b"1.50",
        b"1e400",
        b"1E+2",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b"NaN",
        b"Infinity",
    ),
    *(
        b'""',
        b'"x"',
        b'"a\\nb"',
        b'"\\u00e9"',
        b'"\\ud83d\\ude00"',
        b'"\\ud83d"',
        b'"\\uDEAD"',
        b'"\\x"',
        b"'x'",
        b'"\t"',
        b'"',
    ),
    *(
        b"{}",
        b"[]",
        b"{ }",
        b"[ ]",
        b'{"a":1,"a":2}',
        b'{"a":1},"b":{"c":2}',
        b'{"a":1}}',
        b"[1],[2]",
        b"1],[2",
        b"[1,2",
        b"{",
    ),
    *(
        b'{"a":1,}',
        b"[1,]",
        b'{"~":7364728193}',
        b"[7364728193]",
        b'{"a":1},{"~":7364728193}',
        b"{a:1}",
        b"{'a':1}",
        b"/**/1",
    ),
    *(
        b'{"data":{"a":1}}',
        b'{"a":1},"id":"2"',
        b'{"a":1},"subject":"s"',
        b'{"a":1},"x":"y","n":5',
        b'{"a":1} ,\n "x" : "y"',
    ),
    *(
        b'{"a":"}"}',
        b'"}}"',
        b'{"a":"\xff"}',
        b'"\xc3\xa9"',
        b'"\xed\xa0\x80"',
        b'"\xf0\x9f\x98\x80"',
        b"\xef\xbb\xbf1",
        b'{"a":"\x7f"}',
    ),
    *(
        b" 1 ",
        b"\n{}\t",
        b"\x0b1",
        b'{"a":\xc2\xa01}',
        b"[" * 150 + b"]" * 150,
        b"[" * 300 + b"]" * 300,
        b'"text", "data":1',
        b"",
    ),
    *(
        b'{"a":1}, "data_base64":"YQ=="',
        b'"\\"data\\":1"',
        b'{"a":1e999999}',
        b'{"a":"\\/\\b\\f"}',
        b'"\\u12"',
        b"[1 2]",
        b"nul",
        b"truex",
    ),
    b"9" * 1200,
    b'{"a":' + b"1" * 1200 + b"}",
    b'{"k":"' + b"x" * 70_000 + b'"}',
)


def binary(attributes: dict[str, Any], data: bytes | None = DATA) -> Record:
    """Write attributes as a binary-mode record, in this order, unchecked."""
    headers: Headers = [
        ("content-type" if name == "datacontenttype" else f"ce_{name}", _utf8(value))
        for name, value in attributes.items()
    ]
    return Record(key=b"k", value=data, headers=headers)


def _utf8(value: Any) -> bytes | None:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def structured(
    members: dict[str, Any], data: bytes | None = DATA, *, style: str = "compact", at: int = 99
) -> Record:
    """Write members and the text of ``data`` as a JSON document, ``data`` in place ``at``, unchecked."""
    between, colon = {"compact": (",", ":"), "spaced": (", ", ": "), "indented": (",\n    ", ": ")}[style]
    parts = [
        f"{json.dumps(n)}{colon}{json.dumps(v, ensure_ascii=False)}".encode("utf-8", "surrogatepass")
        for n, v in members.items()
    ]
    if data is not None:
        parts.insert(at, f'"data"{colon}'.encode() + data)
    opening, closing = (b"{\n    ", b"\n}") if style == "indented" else (b"{", b"}")
    return document(opening + between.encode().join(parts) + closing)


def document(
    value: bytes | None, content_type: bytes | None = JSON_TYPE, *more: tuple[str, bytes | None]
) -> Record:
    """Make a structured record of any value."""
    return Record(value=value, headers=[("content-type", content_type), *more])


def vectors() -> Iterator[Record]:
    """All records of the conformance vectors."""
    for path in sorted(_VECTORS.glob("**/*.json")):
        for case in json.loads(path.read_text("utf-8")).get("cases", ()):
            if "record" in case and case.get("kind") != "encode":  # there it is what is to come out
                yield as_record(convert(case["record"], RecordNotation))


def edges() -> Iterator[Record]:
    """Each attribute with each tricky text, in both modes, and each tricky value of data."""
    for name in (
        "specversion",
        "id",
        "source",
        "type",
        "subject",
        "datacontenttype",
        "dataschema",
        "partitionkey",
        "x",
    ):
        for text in TEXTS:
            yield binary({**BASE, name: text})
            yield structured({**BASE, name: text})
    for name in ("time", "expirytime"):
        for text in TIMES:
            yield binary({**BASE, name: text})
            yield structured({**BASE, name: text})
    for name in EXTENSIONS:
        for text in ("", "1", "0", "x", "true", "TWE=", "http://x/", "2018-04-05T17:31:00Z"):
            yield binary({**BASE, name: text})
        for value in ("", "1", 1, 0, -1, 1.5, 2**31, True, False, None, {}, [], "x"):
            yield structured({**BASE, name: value})
    for name in BASE:
        for value in (None, 5, True, 1.0, {}, [], "x" * 5000):
            yield structured({**BASE, name: value})
        yield binary({**BASE, name: None})
        yield binary({n: v for n, v in BASE.items() if n != name})
        yield structured({n: v for n, v in BASE.items() if n != name})
    yield from _uris()
    yield from _data()
    yield from _headers()


def _uris() -> Iterator[Record]:
    for name in ("source", "dataschema"):
        for text in URIS:
            yield binary({**BASE, name: text})
            yield structured({**BASE, name: text})


def _data() -> Iterator[Record]:
    for text in DATA_TEXTS:
        for media in (
            "application/json",
            None,
            "text/plain",
            "application/vnd.a+json; charset=utf-8",
            "text/plain; charset=utf-16",
        ):
            members = {n: v for n, v in BASE.items() if n != "datacontenttype"} | (
                {"datacontenttype": media} if media else {}
            )
            yield structured(members, text)
        for style in ("spaced", "indented"):
            yield structured(BASE, text, style=style)
        yield structured(BASE, text, at=3)
        yield binary(BASE, text)
    yield binary(BASE, None)
    yield structured(BASE, None)
    for encoded in (
        "",
        "YQ==",
        "YWI=",
        "YWJj",
        "YQ",
        "YQ=",
        "YR==",
        "Y Q==",
        "YQ==\n",
        "-_-_",
        "é",
        "YWJj" * 2000,
        None,
        5,
    ):
        yield structured({**BASE, "data_base64": encoded}, None)
        yield structured({**BASE, "data_base64": encoded})
        yield structured({"data_base64": encoded, **BASE}, b"null")


def _headers() -> Iterator[Record]:
    good = binary(BASE).headers
    for name in ("ce_id", "ce_subject", "ce_x", "content-type", "foreign", "ce_partitionkey"):
        for value in (b"other", b"sensor-17", b"", None, b"\xff"):
            yield Record(value=b"v", headers=[*good, (name, value)])
            yield Record(value=b"v", headers=[(name, value), *good])
            yield Record(value=b"v", headers=[*good, (name, value), (name, value)])
            yield document(structured(BASE).value, JSON_TYPE, (name, value))
            yield Record(value=b"v", headers=[(name, value)])
    for name in (
        "CE_ID",
        "ce-id",
        "Content-Type",
        "ce_",
        "ce",
        "ce_ID",
        "ce_datacontenttype",
        "ce_data",
        "",
        "é",
        "ce_é",
    ):
        yield Record(value=b"v", headers=[*good, (name, b"application/json")])
        yield Record(value=b"v", headers=[*good, (name, None)])
    for count in (9, 40, 70):
        more: Headers = [(f"ce_ext{n}", b"v") for n in range(count)]
        foreign: Headers = [(f"other{n}", bytes([n, 255])) for n in range(count)]
        yield Record(value=b"v", headers=good + more)
        yield Record(value=b"v", headers=foreign + good)
        yield Record(value=b"v", headers=foreign + good + more)
    yield Record(value=b"v", headers=list(reversed(good)))
    for value in (
        None,
        b"",
        b"{}",
        b"[]",
        b"null",
        b"5",
        b"{",
        b"}",
        b'{"a":"b",}',
        b"{,}",
        structured(BASE).value[:-1],
        structured(BASE).value + b" x",
    ):
        yield document(value)
        yield Record(value=value, headers=[])
    for media in TEXTS:
        yield document(structured(BASE).value, _utf8(media))
    yield document(structured(BASE).value, None)
    yield document(structured(BASE).value, b"application/cloudevents+json\xff")


NOISE = (
    *(
        b'"',
        b",",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\\",
        b" ",
        b"\n",
        b"\x00",
        b"\x7f",
        b"a",
        b"T",
        b"Z",
        b"/",
        b"\xff",
    ),
    *(
        b"0",
        b"1",
        b"-",
        b"+",
        b".",
        b"e",
        b"E5",
        b"99999999999",
        b"true",
        b"null",
        b"%",
        b"%41",
        b";",
        b"; a=b",
        b"=",
    ),
    *(
        b"\\u0041",
        b"\\ud800",
        b"\\udC00",
        b"\\n",
        b"\\x",
        b'"id":"x",',
        b'"data":1,',
        b'"x1":5,',
        b'"x1":-0,',
    ),
    # Two to four bytes of UTF-8; a surrogate, beyond Unicode, overlong; a C1 control and two noncharacters.
    *(b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf"),
    *(b"\xc2\x85", b"\xef\xb7\x90", b"\xef\xbf\xbf"),
)


def changed(count: int, seed: int = 1) -> Iterator[Record]:
    """Good records in all styles, each with some small changes: bytes, headers, members."""
    luck = random.Random(seed)
    for _ in range(count):
        names = [n for n in BASE if luck.random() < 0.95]
        luck.shuffle(names)
        attributes = {n: BASE[n] for n in names}
        for _ in range(luck.choice((0, 0, 1, 2))):
            pool = TIMES if (name := luck.choice((*BASE, *EXTENSIONS))) == "time" else TEXTS
            attributes[name] = luck.choice(pool)
        data = luck.choice((DATA, DATA, None, luck.choice(DATA_TEXTS)))
        if luck.random() < 0.4:
            record = binary(attributes, data)
        else:
            style = luck.choice(("compact", "compact", "spaced", "indented"))
            record = structured(attributes, data, style=style, at=luck.choice((0, 3, 99, 99)))
        yield _changed(record, luck)


def _changed(record: Record, luck: random.Random) -> Record:
    value, headers = record.value, list(record.headers)
    kind = luck.choice(("none", "byte", "byte", "cut", "copy", "header", "twice"))
    if kind in ("byte", "cut", "copy") and value:
        at, to = sorted((luck.randrange(len(value)), luck.randrange(len(value))))
        noise = luck.choice(NOISE)
        value = {
            "byte": value[:at] + noise + value[at + luck.randrange(2) :],
            "cut": value[:at] + value[to:],
            "copy": value[:to] + value[at:to] + value[to:],
        }[kind]
    elif kind == "header" and headers:
        at = luck.randrange(len(headers))
        name, old = headers[at]
        old = old or b""
        cut = luck.randrange(len(old) + 1)
        noisy = old[:cut] + luck.choice(NOISE) + old[cut + luck.randrange(2) :]
        headers[at] = (name, luck.choice((None, b"", noisy, noisy, noisy, old.upper())))
    elif kind == "twice" and headers:
        headers.insert(luck.randrange(len(headers) + 1), luck.choice(headers))
    return Record(key=record.key, value=value, headers=headers)
