"""Random records: JSON texts and headers of events, valid and broken, as no writer writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

from cloudevents_kafka.record import Headers, Record

from .records import BASE, DATA_TEXTS, TEXTS, TIMES, URIS, document

CONTENT_TYPES: Final = (
    *("application/json", "application/vnd.a+json", "text/plain", "text/xml", "image/png", "a/b"),
    *("application/json; charset=utf-8", "application/json;charset=UTF-8", "text/plain ; charset=utf8"),
    *(
        'text/plain; charset="utf-8"',
        "text/plain; a=b; charset=us-ascii",
        'a/json; x="é;\\"y"; CHARSET=Utf-8',
    ),
    *(
        "application/json; charset=us-ascii",
        "text/plain; charset=iso-8859-1",
        "text/json; charset=utf-16",
        "{/}",
    ),
)
FORMATS: Final = (
    *(b"application/cloudevents+json", b"application/cloudevents+json; charset=utf-8"),
    *(b"Application/CloudEvents+JSON ; Charset=UTF-8", b'application/cloudevents+json;a="b c"'),
    *(
        b"application/cloudevents+json\t",
        b"application/cloudevents+json; not valid",
        b"application/cloudevents+json;",
    ),
    *(b"application/cloudevents+json; charset=us-ascii", b"application/cloudevents+json; charset=latin1"),
)
ADDRESSES: Final = (
    *(
        "::",
        "::1",
        "1::",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "1::3:4:5:6:7:8",
        "fe80::A:b",
    ),
    *(
        "::1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4",
        "1.2.3.4",
        "::1.2.3.256",
        "::1.2.3",
        "::01.2.3.4",
        "1:2:3:4:5:6:7:1.2.3.4",
    ),
    *(
        "",
        ":",
        ":1::",
        "1:::2",
        "1::2::3",
        "12345::",
        "::g",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::1%25eth0",
    ),
    *("v1.a:b", "vF.", "v.a", "v1.é", "1:", ":1:2:3:4:5:6:7", "0::0.0.0.0", "::1.2.3.4.5", "::.1.2.3"),
)
_EXTENSIONS: Final[dict[str, tuple[Any, ...]]] = {
    "partitionkey": ("k", "", 5),
    "traceparent": ("00-1", ""),
    "tracestate": ("", "a=b"),
    "sampledrate": (1, 0, -1, "5", "-0", "05", 2**31 - 1, 2**31, True, "x"),
    "severitynumber": (0, -1, "-0", "17", 9),
    "severitytext": ("warn", ""),
    "opcuastatus": (0, -(2**31), "-2147483648", "2147483648", "-2147483649", "-0", "+1"),
    "opcuametadatamajorversion": (1, "2"),
    "deprecated": (True, False, "true", "false", "True", 1),
    "deprecationfrom": TIMES,
    "deprecationsunset": TIMES,
    "deprecationmigration": URIS,
    "dataref": ("", *URIS, *(f"//[{address}]:1/p" for address in ADDRESSES)),
    "expirytime": TIMES,
    "recordedtime": TIMES,
    "authtype": ("", "user"),
    "authid": ("", "a"),
    "dataclassification": ("", "c"),
    "dataregulation": ("a,b", "a, b", "a b", "", ",", " ", "a,,b ", ",a", "é,b"),
    "datacategory": ("a", ""),
    "dssematerial": (
        "",
        "YQ==",
        "YR==",
        "YWI=",
        "YWJ=",
        "YWJj",
        "YQ",
        "YQ= =",
        "+/+/",
        "-_-_",
        "=",
        "====",
        "a===",
    ),
    "bamptxcompleted": (True, "false", "x"),
    "x": ("", 0, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 1.5, 1e3, True, False, {}, [1], "é", "\x7f"),
    "ext9": TEXTS,
}
_SPACES: Final = ("", "", "", " ", "\n  ", "\t", "\r\n", "\x0b", "\xa0")


def generated(count: int, seed: int = 1) -> Iterator[Record]:
    """Yield random records, about half of which are valid events."""
    luck = random.Random(seed)
    for _ in range(count):
        attributes = _attributes(luck)
        yield _json(attributes, luck) if luck.random() < 0.7 else _binary(attributes, luck)


def _attributes(luck: random.Random) -> dict[str, Any]:
    """Return attributes that are mostly valid, in random order."""
    made = {
        name: value for name, value in BASE.items() if luck.random() < (0.98 if name in _REQUIRED else 0.5)
    }
    if "datacontenttype" in made:
        made["datacontenttype"] = luck.choice(CONTENT_TYPES)
    for _ in range(luck.choice((0, 0, 1, 1, 2, 5))):
        name = luck.choice(tuple(_EXTENSIONS))
        made[name] = luck.choice(_EXTENSIONS[name])
    if luck.random() < 0.2:
        made["source"] = luck.choice(
            (*URIS, *(f"x://u@[{address}]" for address in ADDRESSES), "größe/\u2003", "é€😀")
        )
    if luck.random() < 0.1:
        made["time"] = luck.choice(TIMES)
    for name, others in _NEEDED.items():
        if name in made and luck.random() < 0.9:
            made |= {other: good for other, good in others.items() if other not in made}
    if luck.random() < 0.05:
        made |= {f"n{n}": "v" for n in range(luck.choice((15, 16, 17, 70)))}
    names = list(made)
    luck.shuffle(names)
    return {name: made[name] for name in names}


_REQUIRED: Final = ("specversion", "id", "source", "type")
_BAM: Final = dict.fromkeys(("bamtxid", "bampid", "bamptxid", "bamptxsid"), "b")
_NEEDED: Final[dict[str, dict[str, Any]]] = {
    "tracestate": {"traceparent": "00-1"},
    "severitytext": {"severitynumber": 9},
    "deprecationfrom": {"deprecated": True},
    "deprecationsunset": {"deprecated": True},
    "deprecationmigration": {"deprecated": True},
    "authid": {"authtype": "user"},
    "dataregulation": {"dataclassification": "c"},
    "datacategory": {"dataclassification": "c"},
    "bamptxcompleted": _BAM,
}


# --- structured mode ---


def _json(attributes: dict[str, Any], luck: random.Random) -> Record:
    members = [(name, json.dumps(value, ensure_ascii=False)) for name, value in attributes.items()]
    members += [(luck.choice(("gone", "Not A Name", "", "x", "subject")), "null")] * (luck.random() < 0.2)
    if luck.random() < 0.6:
        members.append(("data", _data(attributes.get("datacontenttype"), luck)))
    if luck.random() < 0.25:
        members.append(
            ("data_base64", luck.choice(('"YWI="', '"YWJj"', '""', '"YR=="', "null", "5", '"\\ud83d"')))
        )
    luck.shuffle(members)
    if luck.random() < 0.03:
        members.append(luck.choice(members or [("id", '"1"')]))
    escaping = luck.choice((_same, _same, _ascii, lambda text, luck=luck: _escaped(text, luck)))
    spaces = _SPACES if luck.random() < 0.02 else _SPACES[: luck.choice((1, 4, 7))]

    def space() -> str:
        return luck.choice(spaces)

    texts = [
        f"{space()}{escaping(json.dumps(name, ensure_ascii=False))}{space()}:{space()}"
        f"{text if name == 'data' else escaping(text)}{space()}"
        for name, text in members
    ]
    text = space() + "{" + ",".join(texts) + "}" + space()
    value = text.encode("utf-8", "surrogatepass")
    if luck.random() < 0.15:
        at = luck.randrange(len(value))
        noise = luck.choice(
            (b"", b",", b"\\", b'"', b"}", b"\x00", b"\x7f", b"\xc3", b"\xf0\x9f\x98\x80", b"0", b"e", b" ")
        )
        value = value[:at] + noise + value[at + luck.randrange(2) :]
    return document(value, luck.choice(FORMATS) if luck.random() < 0.3 else FORMATS[0], *_foreign(luck))


def _data(content_type: str | None, luck: random.Random) -> str:
    """Return the JSON of data that mostly has the kind of its content type."""
    kind = luck.random()
    if kind < 0.15:
        return luck.choice(DATA_TEXTS).decode("utf-8", "replace")
    if content_type is not None and "json" not in content_type and kind < 0.95:
        text = luck.choice(("", "plain", "größer €", 'a "q" \\ \n', "😀", "\x7f", "long " * 30))
        return luck.choice((_same, _ascii))(json.dumps(text, ensure_ascii=False))
    return _value(luck, 0)


def _value(luck: random.Random, depth: int) -> str:
    """Return the text of a random JSON value."""
    kind = luck.randrange(8 if depth < 4 else 6)
    if kind < 2:
        return luck.choice(
            ("0", "-0", "-1.5e+3", "1E9", "12345678901234567890", "0.1", "1e999", "null", "true", "false")
        )
    if kind < 6:
        return luck.choice(
            ('""', '"a"', '"é\\n\\u20ac\\/"', '"\\ud83d\\ude00"', '"\\ud800"', '"}]\\"{,"', f'"{"x" * 40}"')
        )
    space = luck.choice(_SPACES[:7])
    items = [_value(luck, depth + 1) for _ in range(luck.choice((0, 1, 2, 5)))]
    if kind == 6:
        return f"[{space}{f'{space},'.join(items)}{space}]"
    return (
        "{"
        + space
        + f",{space}".join(f'"k{n % 3}"{space}:{item}' for n, item in enumerate(items))
        + space
        + "}"
    )


def _same(text: str) -> str:
    return text


def _ascii(text: str) -> str:
    """Return a JSON text with each character that is not ASCII as one or two escapes."""
    return "".join(c if c < "\x7f" else _escape(c) for c in text)


def _escaped(text: str, luck: random.Random) -> str:
    """Return a JSON string, or another text unchanged, with some characters of it as escapes."""
    if not text.startswith('"') or "\\" in text:
        return text
    return f'"{"".join(_escape(c) if luck.random() < 0.2 else c for c in text[1:-1])}"'


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    texts = (f"\\u{units[n]:02x}{units[n + 1]:02X}" for n in range(0, len(units), 2))
    return "\\/" if character == "/" else "".join(texts)


# --- binary mode ---


def _binary(attributes: dict[str, Any], luck: random.Random) -> Record:
    headers: Headers = []
    for name, value in attributes.items():
        text = value if isinstance(value, str) else json.dumps(value)
        header = "content-type" if name == "datacontenttype" else f"ce_{name}"
        headers.append((header, text.encode("utf-8", "surrogatepass")))
    more: list[Callable[[], tuple[str, bytes | None]]] = [
        lambda: ("ce_datacontenttype", str(attributes.get("datacontenttype", "a/b")).encode()),
        lambda: ("ce_datacontenttype", None),
        lambda: (luck.choice(headers or [("ce_id", b"")])[0], None),
        lambda: ("ce_", luck.choice((b"", b"\xff", None))),
        lambda: luck.choice(headers or [("ce_id", b"")]),
        lambda: (luck.choice(("ce_Bad", "ce_data", "ce_a_b", "CE_x", "ce-id")), luck.choice((None, b"1"))),
    ]
    for _ in range(luck.choice((0, 0, 0, 1, 2))):
        headers.insert(luck.randrange(len(headers) + 1), luck.choice(more)())
    return Record(value=luck.choice((None, b"", b"{}", b"\x00\xff")), headers=headers + _foreign(luck))


def _foreign(luck: random.Random) -> Headers:
    return [("other", luck.choice((None, b"\xff", b"x")))] * luck.choice((0, 0, 1, 3))
