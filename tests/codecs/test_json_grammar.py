"""The grammar of JSON alone: it agrees with Python's own parser, and goes on where parsers stop."""

from __future__ import annotations

import json
from typing import Any

import pytest
import strategies as make
from hypothesis import example, given
from hypothesis import strategies as st

from cloudevents_kafka.codecs.json_grammar import blank_members, find_lone_surrogate, is_json_text


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
def test_tokens_in_any_order_are_what_python_says(text: str) -> None:
    """What Python's parser takes is JSON, and nothing else is."""
    assert is_json_text(text.encode()) is is_json_elsewhere(text)


@make.examples(300)
@given(make.json_values, st.sampled_from([None, 1]), st.data())
def test_values_are_json_and_cut_ones_are_what_python_says(value: Any, indent: int | None, data: Any) -> None:
    """Every value is JSON, indented or not; with a character gone it is what Python says."""
    text = json.dumps(value, indent=indent)
    assert is_json_text(text.encode())
    at = data.draw(st.integers(0, len(text) - 1))
    cut = text[:at] + text[at + 1 :]
    assert is_json_text(cut.encode()) is is_json_elsewhere(cut)


@make.examples(300)
@given(st.dictionaries(st.text(max_size=4), make.json_values, max_size=5), st.sampled_from(["a", "data", ""]))
def test_members_set_aside_are_kept_to_the_byte(members: dict[str, Any], name: str) -> None:
    """The object reads as before but for the members named, whose texts are what they were."""
    members = {**members, name: members.get(name, [1, {"data": 2}])}
    text = json.dumps(members, indent=1).encode()
    aside = blank_members(text, name)
    assert aside is not None
    rest, kept = aside
    assert len(rest) == len(text)
    assert json.loads(rest) == {**members, name: 0}
    assert json.loads(kept[name]) == members[name]
    assert kept[name] in text


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"1", b"{", b'{"data"}', b'{"data":1,}', b'{"data":1}x', b'{"a":1 2}']
)
def test_what_is_no_object_has_no_members(text: bytes) -> None:
    """A value of another kind, and what is not JSON, cannot be taken apart."""
    assert blank_members(text, "data") is None


def test_of_members_of_one_name_the_last_is_kept() -> None:
    """All are set to 0, so that a reader still finds that there are two."""
    assert blank_members(b'{"data":[1],"data" : "x" }', "data") == (
        b'{"data":0  ,"data" : 0   }',
        {"data": b'"x"'},
    )


def test_a_name_with_escapes_is_the_name_it_spells() -> None:
    """Half a surrogate pair in a name is no name that anybody looks for."""
    assert blank_members(b'{"d\\u0061ta":7,"\\ud83d":1}', "data") == (
        b'{"d\\u0061ta":0,"\\ud83d":1}',
        {"data": b"7"},
    )


@pytest.mark.parametrize(
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
def test_the_first_half_of_a_pair_is_found(text: bytes, index: int | None) -> None:
    """It is named by the byte behind its escape, whichever half it is."""
    assert find_lone_surrogate(text) == index


@pytest.mark.parametrize(
    "text",
    [
        make.deep(b"[", 200_000, b"]"),
        make.deep(b'{"a":', 100_000, b"}"),
        make.deep(b'[{"\\"[" : [ ', 50_000, b"]}]"),
        b"[" + b"[1]," * 50_000 + b"{}]",
    ],
    ids=["arrays", "objects", "both", "wide"],
)
def test_no_depth_is_too_deep(text: bytes) -> None:
    """The grammar needs no stack of Python's."""
    assert is_json_text(text)
    assert not is_json_text(text[:-1])
    assert not is_json_text(text + b"]")
