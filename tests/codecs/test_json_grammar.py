"""The grammar of JSON, compared with Python's parser, and beyond the limits of parsers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.codecs.json_grammar import blank_members, find_lone_surrogate, is_json_text
from tests.support import strategies as make
from tests.support.cases import each


def refuse(_: str) -> Any:
    raise ValueError("not in the grammar of RFC 8259")


def is_json_elsewhere(text: str) -> bool:
    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


TOKENS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"a"',
    '"\\ud83d"',
    "1",
    "-0.5e3",
    "true",
    "null",
    " ",
    "01",
    "-",
    '"',
    "NaN",
]


@make.examples(1000)
@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
@example('[1,"a":2]')
@example('{"a":1,"b"}')
@example('{"a":1,2}')
@example("[1,]")
@example("[[1],[2]]")
@example("[]]")
@example('"\x1f"')
def test_any_tokens(text: str) -> None:
    """A text is JSON if Python's parser accepts it."""
    assert is_json_text(text.encode()) is is_json_elsewhere(text)


@make.examples(300)
@given(make.json_values, st.sampled_from([None, 1]), st.data())
def test_values_with_a_character_removed(value: Any, indent: int | None, data: Any) -> None:
    """Every encoded value is JSON; with a character removed it is JSON if Python's parser accepts it."""
    text = json.dumps(value, indent=indent)
    assert is_json_text(text.encode())
    at = data.draw(st.integers(0, len(text) - 1))
    cut = text[:at] + text[at + 1 :]
    assert is_json_text(cut.encode()) is is_json_elsewhere(cut)


@make.examples(300)
@given(st.dictionaries(st.text(max_size=4), make.json_values, max_size=5), st.sampled_from(["a", "data", ""]))
def test_blank_members_keep_their_texts(members: dict[str, Any], name: str) -> None:
    """Only the selected members of the object change, and their texts are exact."""
    members = {**members, name: members.get(name, [1, {"data": 2}])}
    text = json.dumps(members, indent=1).encode()
    aside = blank_members(text, name)
    assert aside is not None
    rest, kept = aside
    assert len(rest) == len(text)
    assert json.loads(rest) == {**members, name: 0}
    assert json.loads(kept[name]) == members[name]
    assert kept[name] in text


@each("text", [b"", b"[]", b"1", b"{", b'{"data"}', b'{"data":1,}', b'{"data":1}x', b'{"a":1 2}'])
def test_other_texts_have_no_members(text: bytes) -> None:
    """A text that is not an object returns None."""
    assert blank_members(text, "data") is None


def test_the_last_of_repeated_members_is_kept() -> None:
    """All are set to 0, so that the repeat can still be found."""
    assert blank_members(b'{"data":[1],"data" : "x" }', "data") == (
        b'{"data":0  ,"data" : 0   }',
        {"data": b'"x"'},
    )


def test_names_with_escapes() -> None:
    """A name is compared after its escapes are decoded; a lone surrogate matches no name."""
    assert blank_members(b'{"d\\u0061ta":7,"\\ud83d":1}', "data") == (
        b'{"d\\u0061ta":0,"\\ud83d":1}',
        {"data": b"7"},
    )


@each(
    ("text", "index"),
    [
        (rb'"\ud83d\ude00"', None),
        (rb'"\uD83D\uDE00 \ud83d\ude00"', None),
        (rb'"\\ud83d"', None),
        (rb'"\u0041\n\/"', None),
        (rb'"\ud83d"', 7),
        (rb'"\ude00"', 7),
        (rb'"\ud83d\ud83d\ude00"', 7),
        (rb'"\ude00\ud83d"', 7),
        (rb'"\ud83d\u0041"', 7),
        (rb'"\\\ud83d"', 9),
        (b"", None),
    ],
)
def test_the_first_lone_surrogate_is_found(text: bytes, index: int | None) -> None:
    """The index is that after its escape, for both halves of a pair."""
    assert find_lone_surrogate(text) == index


@each(
    "text",
    [
        make.deep(b"[", 200_000, b"]"),
        make.deep(b'{"a":', 100_000, b"}"),
        make.deep(b'[{"\\"[" : [ ', 50_000, b"]}]"),
        b"[" + b"[1]," * 50_000 + b"{}]",
    ],
    ids=["arrays", "objects", "both", "wide"],
)
def test_depth_is_not_limited(text: bytes) -> None:
    """The grammar does not recurse."""
    assert is_json_text(text)
    assert not is_json_text(text[:-1])
    assert not is_json_text(text + b"]")
