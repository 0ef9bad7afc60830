"""Control and invisible characters are escaped."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka.cli.terminal.text import escape, escape_json


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
