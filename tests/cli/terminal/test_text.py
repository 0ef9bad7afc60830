"""Control and invisible characters are escaped."""

from __future__ import annotations

import json

import click
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.cli.terminal.text import (
    columns,
    escape,
    escape_json,
    fit,
    fit_words,
    near,
    styled,
    wrap,
)


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


WORDS = st.lists(st.text("ab你,-", min_size=1, max_size=30), min_size=1, max_size=30)


@given(WORDS, WORDS, st.integers(20, 120), st.sampled_from(["  ", "   ", " "]))
def test_wrapped_lines_keep_whole_words(names, words, width, between):
    """A wrapped line has the same words, whole; each line that is too wide is a single word."""
    name, text = " ".join(names), " ".join(words)
    line = styled(f"  {name}{between}", "name") + styled(text, "error")
    wrapped = click.unstyle(wrap(line, width))
    assert wrapped.split() == [*names, *words]
    _, *others = wrapped.split("\n")
    assert all(columns(part) <= width or " " not in part.strip() for part in others)
    indents = {len(part) - len(part.lstrip()) for part in others}
    assert len(indents) <= 1
    assert wrap(line, None) == line == wrap(line, 10**6)


def test_further_lines_stand_below_the_second_column():
    """Further lines stand below the second column of a line, and those of a sentence two spaces in."""
    assert wrap("  name   one two three", 18) == "  name   one two\n         three"
    assert wrap("one two three four", 9) == "one two\n  three\n  four"


def test_near_names():
    """Names that are near, in any case, are suggested in one question; others are not."""
    names = ["orders", "order-lines", "payments", "MetadataRequest"]
    assert near("ordrs", names) == "; did you mean 'orders'?"
    assert near("metadatarequest", names) == "; did you mean 'MetadataRequest'?"
    assert near("x", names) == ""


@given(WORDS, st.integers(20, 120))
def test_lines_are_cut_behind_words(words, width):
    """A line that is too long is cut behind a word, unless the last word is a large part of it."""
    line = " ".join(words)
    cut = fit_words(line, width)
    assert columns(cut) <= width
    if cut != line:
        assert cut.endswith("…")
        assert line.startswith(cut[:-1])
        whole = cut.removesuffix(" …").split() == words[: len(cut.split()) - 1]
        assert whole or len(max(cut[:-1].split(), key=columns)) * 2 > width // 4
