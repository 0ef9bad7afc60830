"""The page about an outbox of Debezium says how its records are read.

The headers and values are those that EventRouter of Debezium 3.0.0, InsertHeader and the converters of Kafka
Connect 3.8.0 wrote for one row.
"""

from __future__ import annotations

import re

from cloudevents_kafka import Decoded, Record, decode
from tests.docs import pages
from tests.support.cases import each

PAGE = pages.DOCS / "how-to" / "debezium_outbox.md"
ID = b"4d47e190-0402-4048-bc2c-89dd54343cdc"
ROW = [
    ("id", ID),
    ("ce_id", ID),
    ("ce_type", b"order.placed"),
    ("ce_source", b"/shop"),
    ("ce_subject", None),  # a column that is null
    ("content-type", b"application/json"),
]
QUOTED = [(name, b'"%b"' % value if value else None) for name, value in [*ROW, ("ce_specversion", b"1.0")]]
JSON = b'{"order": 17, "total": "9.50"}'
JSON_IN_JSON = b'"{\\"order\\": 17, \\"total\\": \\"9.50\\"}"'
ORDER = {"order": 17, "total": "9.50"}
NO_VERSION = "not a CloudEvent: the content-type is 'application/json', and ce_specversion is missing"
VERSION = "broken CloudEvent: specversion: must be 1.0; other versions are not supported, got "
TIME = "broken CloudEvent: time: must be an RFC 3339 timestamp, got '1795435347501000'"


@each(
    ("extra", "strict", "lenient"),
    [
        ([], NO_VERSION, NO_VERSION),
        ([("ce_specversion", b"1.0")], ORDER, ORDER),  # of a column
        ([("ce_specversion", b"1")], f"{VERSION}'1'", f"{VERSION}'1'"),  # of InsertHeader, value.literal=1.0
        ([("ce_specversion", b'"1.0"')], f"{VERSION}'\"1.0\"'", ORDER),  # of InsertHeader, in quotation marks
        ([("ce_specversion", b"1.0"), ("ce_time", b"2026-11-23T12:02:27.501Z")], ORDER, ORDER),
        ([("ce_specversion", b"1.0"), ("ce_time", b"1795435347501000")], TIME, ORDER),
    ],
)
def test_strict_and_lenient_reading(extra: list[tuple[str, bytes]], strict: object, lenient: object) -> None:
    """Without a version, or with InsertHeader's number, both refuse, with the message of the page."""
    for expected, is_lenient in (strict, False), (lenient, True):
        item = decode(Record(key=b"c-4", value=JSON, headers=[*ROW, *extra]), lenient=is_lenient)
        if isinstance(item, Decoded):
            assert item.event.data == expected
        else:
            assert str(item.error).startswith(str(expected))
            assert str(expected).partition(", got ")[0] in PAGE.read_text("utf-8")


def test_headers_of_a_json_converter() -> None:
    """Lenient reading removes the quotation marks, and strict reading refuses them."""
    record = Record(value=JSON, headers=QUOTED)
    assert not isinstance(decode(record), Decoded)
    item = decode(record, lenient=True)
    assert isinstance(item, Decoded)
    assert (item.event.id, item.event.type) == (ID.decode(), "order.placed")


def test_a_value_of_a_json_converter_is_a_text() -> None:
    """It is JSON of a text, so the data is a text, which looks like JSON."""
    item = decode(Record(value=JSON_IN_JSON, headers=[*ROW, ("ce_specversion", b"1.0")]))
    assert isinstance(item, Decoded)
    assert item.event.data == JSON.decode()


def test_the_settings_name_all_that_an_event_needs() -> None:
    """Each REQUIRED attribute is a column that becomes its header."""
    settings = re.search(r"additional\.placement=(\S+)", PAGE.read_text("utf-8"))
    assert settings
    headers = {one.rpartition(":")[2] for one in settings[1].split(",")}
    assert headers == {"ce_id", "ce_source", "ce_specversion", "ce_type"}
