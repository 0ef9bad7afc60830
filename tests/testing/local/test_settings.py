"""Settings reach Java's reader of properties unchanged."""

from __future__ import annotations

from cloudevents_kafka.testing.local._settings import Ports, write_properties, write_server_properties


def test_properties(tmp_path):
    """Backslashes, line ends and characters outside ASCII are escaped; booleans are in lower case."""
    write_properties(tmp_path / "p", {"a": True, "b": r"C:\x", "c": "1\n2", "d": "/tmp/ü中😀"})
    expected = "a=true\nb=C:\\\\x\nc=1\\n2\nd=/tmp/\\u00fc\\u4e2d\\ud83d\\ude00\n"
    assert (tmp_path / "p").read_text(encoding="ascii") == expected


def test_records_do_not_expire(tmp_path):
    """The broker keeps records of any age, unless a setting of the caller says otherwise."""
    for overrides, expected in (({}, "-1"), ({"log.retention.ms": 1000}, "1000")):
        write_server_properties(tmp_path / "p", Ports(1, 2), tmp_path / "data", overrides)
        assert f"\nlog.retention.ms={expected}\n" in (tmp_path / "p").read_text(encoding="ascii")
