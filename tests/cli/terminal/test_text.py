"""Control and invisible characters are escaped."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.cli.terminal.text import columns, escape, escape_json, fit


@given(st.text())
def test_escaped_text_is_safe(text):
    """Escaped text has no control characters, and escaped JSON keeps its value."""
    escaped = escape(text)
    assert not any(c in escaped for c in "\x1b\x9b\x07\r\n\u202e\u2066\u200b\u2028\x7f")
    assert escape(escaped) == escaped
    json_text = json.dumps(text, ensure_ascii=False)
    assert json.loads(escape_json(json_text)) == text
    assert escape_json(json_text).isprintable() or not json_text.isprintable()


def test_other_text_stays_unchanged():
    """Letters of any script, symbols and spaces are not escaped."""
    assert escape("Grüße, 你好 — 😀 ok") == "Grüße, 你好 — 😀 ok"


@given(st.text(max_size=30), st.integers(0, 20))
def test_texts_are_fitted_to_columns(text, width):
    """A text that fits stays as it is; another one is cut, and ends with an ellipsis."""
    text = escape(text)
    found = fit(text, width)
    assert columns(found) <= width
    if columns(text) <= width:
        assert found == text
    elif width:
        assert found[-1] == "\u2026"
        assert text.startswith(found[:-1])


def test_columns_of_wide_and_combining_characters():
    """East Asian characters have two columns, combining ones none."""
    assert [columns(text) for text in ("abc", "\u4e16\u754c", "e\u0301", "\uff76")] == [3, 4, 1, 1]
    assert fit("\u4e16\u754c", 3) == "\u4e16\u2026"


def test_json_of_several_lines() -> None:
    """The line ends between values of JSON stay."""
    text = json.dumps({"a": ["\x9b", "\n"]}, indent=2, ensure_ascii=False)
    assert json.loads(escape_json(text)) == {"a": ["\x9b", "\n"]}
    assert escape_json(text).count("\n") == text.count("\n")
