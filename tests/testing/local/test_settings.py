"""Settings reach Java's reader of properties unchanged."""

from __future__ import annotations

from cloudevents_kafka.testing.local._settings import write_properties


def test_properties(tmp_path):
    """Backslashes, line ends and characters outside ASCII are escaped; booleans are in lower case."""
    write_properties(tmp_path / "p", {"a": True, "b": r"C:\x", "c": "1\n2", "d": "/tmp/ü中😀"})
    expected = "a=true\nb=C:\\\\x\nc=1\\n2\nd=/tmp/\\u00fc\\u4e2d\\ud83d\\ude00\n"
    assert (tmp_path / "p").read_text(encoding="ascii") == expected
