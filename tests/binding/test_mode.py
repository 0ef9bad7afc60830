"""One answer to the mode in which an event was read, in all outputs."""

from __future__ import annotations

import json

from cloudevents_kafka import Decoded, Record, decode
from cloudevents_kafka.cli.records.json_lines import write_line
from cloudevents_kafka.cli.records.output import mode_text
from cloudevents_kafka.cli.records.template import Template
from cloudevents_kafka.counting import RecordCounts
from tests.support import strategies as make
from tests.support.cases import each

VALUE = b'{"specversion":"1.0","id":"1","source":"/","type":"t"}'
JSON = b"application/cloudevents+json"


@each(
    ("record", "mode", "form"),
    [
        (Record(headers=make.required_headers), "binary", None),
        (Record(headers=[(name.upper(), value) for name, value in make.required_headers]), "binary", None),
        (Record(value=VALUE, headers=[("content-type", JSON)]), "structured", "json"),
        (Record(value=VALUE), "structured", "json"),
        (Record(value=VALUE, headers=[("content-type", b"application/json")]), "structured", "json"),
        (Record(value=VALUE, headers=[("content-type", b"application/cloudevents")]), "structured", "json"),
        (Record(value=VALUE, headers=[("Content-Type", JSON)]), "structured", "json"),
        (Record(value=VALUE, headers=[("content-type", b'"%b"' % JSON)]), "structured", "json"),
        (
            Record(value=VALUE, headers=[("content-type", b'"%b"' % JSON), *make.required_headers]),
            "structured",
            "json",
        ),
    ],
    ids=lambda value: repr(value)[-60:],
)
def test_outputs_have_one_mode(record: Record, mode: str, form: str | None) -> None:
    """The item, a JSON line, a text and the counts say how lenient reading read the record."""
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded), item
    assert (item.mode, item.format) == (mode, form)
    line = json.loads(write_line(item))
    assert (line["mode"], line.get("format")) == (mode, form)
    assert Template("{mode}", lambda _: "").render(item) == mode
    counts = RecordCounts()
    counts.add(item)
    assert counts.modes.most_common(2) == ([(mode, 1)], 0)
    assert counts.formats.most_common(2) == ([] if form is None else [(form, 1)], 0)
    assert mode_text(item.mode, item.format).split() == [mode, *([form] if form else [])]
