"""The decoder of JSON envelopes: the problems of members, repeats and data."""

from __future__ import annotations

import re

import pytest

from cloudevents_kafka import Decoded, InvalidEvent, Record, Undecodable, decode, from_record
from cloudevents_kafka.formats.json import JsonFormat
from tests.support import strategies as make
from tests.support.cases import each

HEAD = b'{"specversion":"1.0","id":"1","source":"/","type":"t"'
JSON = JsonFormat()


@each(
    ("value", "clause"),
    [
        (b"", "J-01"),
        (b"[]", "J-01"),
        (b"null", "J-01"),
        (b'"x"', "J-01"),
        (HEAD, "J-01"),
        (HEAD + b"}}", "J-01"),
        (HEAD + b",}", "J-01"),
        (HEAD + b'X"data":1}', "J-01"),
        (HEAD + b' "data":1}', "J-01"),
        (HEAD + b'},"data":', "J-01"),
        (HEAD + b'},"data":1}', "J-01"),
        (b"\xef\xbb\xbf" + HEAD + b"}", "J-01"),
        (HEAD + b',"x":"\xff"}', "J-01"),
        (HEAD + b',"data":"\xff"}', "J-01"),
        (HEAD + b',"x":"\\ud800"}', "J-01"),
        (HEAD + b',"data":NaN}', "J-01"),
        (HEAD.decode().encode("utf-16"), "J-01"),
        (HEAD + b',"id":"1"}', "N-05"),
        (HEAD + b',"\\u0069d":"1"}', "N-05"),
        (HEAD + b',"data":1,"data":1}', "N-05"),
        (HEAD + b',"data_base64":"","data_base64":""}', "N-05"),
        (HEAD + b',"x":1.0}', "J-03"),
        (HEAD + b',"x":1e2}', "J-03"),
        (HEAD + b',"x":[]}', "J-03"),
        (HEAD + b',"subject":{}}', "J-03"),
        (HEAD + b',"x":2147483648}', "T-04"),
        (HEAD + b',"subject":5}', "R-12"),
        (HEAD + b',"myExt":"x"}', "N-01"),
        (HEAD + b',"time":"noon"}', "T-12"),
        (HEAD.replace(b'"1"', b"null") + b"}", "R-01"),
        (HEAD.replace(b'"1"', b"25") + b"}", "R-02"),
        (HEAD.replace(b'"1.0"', b"1.0") + b"}", "J-03"),
        (HEAD + b',"data":1,"data_base64":"TQ=="}', "J-12"),
        (HEAD + b',"data_base64":5}', "J-14"),
        (HEAD + b',"data_base64":"TQ"}', "J-14"),
        (HEAD + b',"datacontenttype":"text/plain","data":5}', "J-16"),
        (HEAD + b',"datacontenttype":"text/plain","data":null}', "J-16"),
        (HEAD + b',"datacontenttype":"text/x;charset=us-ascii","data":"\\u00e9"}', "J-16"),
        (HEAD + b',"datacontenttype":"text/json;charset=odd","data":1}', "J-16"),
    ],
    ids=lambda value: repr(value)[-50:],
)
def test_refused(value: bytes, clause: str) -> None:
    """Each problem is reported with its clause."""
    with pytest.raises(InvalidEvent) as caught:
        JSON.decode(value)
    assert [p.clause for p in caught.value.problems] == [clause]


@each(
    ("members", "said"),
    [
        (b',"x":1e999,"Y":"z"', ["x: must be a string.* got a number out of range", "Y: an attribute name"]),
        (b',"x":' + b"9" * 5000, ["x: must be a string.* got a number out of range"]),
        (b',"x":{"a":1e999}', ["x: must be a string.* got an object"]),
        (b',"x":"\\ud800","y":"z"', ["the escape before byte 65 is a lone surrogate"]),
        (b',"x":"\\\\\\uDEad\\u0020"', ["the escape before byte 67 is a lone surrogate"]),
        (
            b',"datacontenttype":"text/plain","data":"\\ud9AB"',
            ["the escape before byte 7 is a lone surrogate"],
        ),
        (b',"x":"\\\\ud800"', []),
        (b',"x":"\\ud83d\\ude00"', []),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_values_that_parsers_refuse(members: bytes, said: list[str]) -> None:
    """A number out of range is reported by its attribute, a lone surrogate by its byte."""
    value = HEAD + members + b"}"
    if not said:
        JSON.decode(value)
        return
    with pytest.raises(InvalidEvent) as caught:
        JSON.decode(value)
    assert len(caught.value.problems) == len(said)
    for problem, words in zip(caught.value.problems, said, strict=True):
        assert re.match(f".*{words}", str(problem))


@each(
    ("value", "clauses"),
    [
        (
            b'{"id":"1","id":"2","source":"","type":"t","specversion":"1.0","myExt":1}',
            ["N-05", "R-04", "N-01"],
        ),
        (HEAD + b',"time":"noon","time":"later"}', ["N-05", "T-12"]),
        (b"{}", ["R-01", "R-01", "R-01", "R-01"]),
        (HEAD + b',"id":null}', ["N-05"]),
        (HEAD + b',"x":1,"x":[]}', ["N-05", "J-03"]),
        (HEAD + b',"x":1,"x":2,"data":1,"data_base64":"TQ=="}', ["N-05", "J-12"]),
        (HEAD + b',"data":1,"data_base64":"!!"}', ["J-12", "J-14"]),
    ],
)
def test_no_problem_hides_another(value: bytes, clauses: list[str]) -> None:
    """Problems are reported together with repeated members and with two kinds of data."""
    with pytest.raises(InvalidEvent) as caught:
        JSON.decode(value)
    assert [p.clause for p in caught.value.problems] == clauses


def test_all_problems_are_reported_together() -> None:
    """Problems of attributes and data are one error."""
    with pytest.raises(InvalidEvent) as caught:
        JSON.decode(b'{"specversion":"0.9","id":"","type":{},"x":1.5,"Y":1,"data":1,"data_base64":""}')
    assert sorted(p.clause for p in caught.value.problems) == [
        "J-03",
        "J-03",
        "J-12",
        "N-01",
        "R-01",
        "R-02",
        "R-05",
    ]


@each(
    ("members", "clause", "tolerated"),
    [
        (b',"x":"\\ud83d","data":"\\ud83d"', "J-01", "J-03"),
        (b',"\\ud83d":"x","data":"\\ud83d"', "J-01", "N-01"),
        (b',"x":' + make.deep(b"[", 100_000, b"]") + b',"data":"\\ud83d"', "J-01", "J-03"),
        (b',"data":1,"data":"\\ud83d"', "N-05", None),
        (b',"data":"\\ud83d","data":1', "N-05", None),
        (b',"data":"\\ud83d","data_base64":"TQ=="', "J-12", None),
        (b',"datacontenttype":"text/plain","data":"\\ud83d"', "J-16", "J-16"),
        (b',"data":"\\ud83d\\q"', "J-01", None),
        (b',"data":["\\ud83d",]', "J-01", None),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_attributes_are_strict_with_such_data(members: bytes, clause: str, tolerated: str | None) -> None:
    """Problems of attributes, repeats and invalid JSON are reported with such data, too."""
    record = Record(value=HEAD + members + b"}", headers=[("content-type", b"application/cloudevents+json")])
    with pytest.raises(InvalidEvent) as caught:
        from_record(record)
    assert [p.clause for p in caught.value.problems] == [clause]
    item = decode(record, lenient=True)
    if tolerated is None:
        assert isinstance(item, Undecodable)
        assert isinstance(item.error, InvalidEvent)
        assert [p.clause for p in item.error.problems] == [clause]
    else:
        assert isinstance(item, Decoded)
        assert ([p.clause for p in item.tolerated], item.event.payload) == ([tolerated], b'"\\ud83d"')
