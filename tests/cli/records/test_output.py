"""Records as text for people."""

from __future__ import annotations

import click

from cloudevents_kafka import Event, Record, decode, to_record
from cloudevents_kafka.cli.records.output import data_text, item_lines, timestamp_text


def test_text_has_no_control_characters():
    """The text of a record with control characters everywhere is printable."""
    controls = b"\x1b]0;x\x07\xc2\x9b2J"
    record = Record(key=controls, value=controls, headers=[(controls.decode(), controls)], topic="\x1b[2J")
    event = to_record(
        Event(id="1", source="/", type="t", datacontenttype="text/plain", data=controls),
        headers=[("x", controls)],
    )
    for item in (decode(record), decode(event)):
        assert click.unstyle("".join(item_lines(item, lambda item: data_text(item.event)))).isprintable()


def test_timestamps_out_of_range():
    """A timestamp after the year 9999 is shown as a number."""
    assert timestamp_text(1795262400000) == "2026-11-21T12:00:00.000Z"
    assert timestamp_text(10**18) == str(10**18)
