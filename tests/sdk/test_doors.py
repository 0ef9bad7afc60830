"""What the SDK writes and reads is read here, with its value, but for differences that the page lists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.errors import DecodeError
from cloudevents_kafka.sdk._installed import HAS_VERSION_2
from tests.support import sdk_events
from tests.support.sdk_events import Message

# Each kind of difference, and the first column of its row in docs/porting.md.
KINDS = {
    "no time": "no `time`",
    "no id": "no `id` or `specversion`",
    "null": "an attribute that is null",
    "no JSON": "NaN and infinity in JSON, numbers beyond a float (`1e400`), lone surrogates",
    "type of the envelope": "structured: the content type of the event format",
    "type of the record": "structured records that version 1 wrote",
    "key": "the key",
    "empty": "an empty value",
    "JSON type": "JSON whose type has capital letters or blanks, or is not `application` or `text`",
    "charset": "data",
    "no marshalled data": "no data, and a `data_unmarshaller`",
}
NOT_JSON = re.compile(rb"NaN|Infinity|\\ud800|1e400|\d{400}")
VERSIONS = (1, 2) if HAS_VERSION_2 else (1,)
Value = tuple[dict[str, Any], Any]


def differences(name: str, written: Message, theirs: Value, again: Value, ours: Value) -> set[str]:
    """Return the kinds of all differences of two values."""
    found = set()
    there, here = theirs[0], ours[0]
    for attribute in there.keys() | here.keys():
        if attribute in there and there[attribute] is None:
            assert here.get(attribute) == (written.message.key if attribute == "partitionkey" else None)
            found.add("null")
        elif attribute not in there:
            assert attribute == "datacontenttype"
            assert here[attribute].encode() == written.message.headers["content-type"]
            found.add("type of the record")
        elif repr_of(there[attribute]) != repr_of(here.get(attribute)):
            found.add(kind_of(attribute, there, again[0], written))
    if repr_of(theirs[1]) != repr_of(ours[1]):
        found.add(kind_of_data(name, written, theirs, ours))
    return found


def repr_of(value: Any) -> str:
    """Return a text that differs for 1, 1.0 and True, and is the same for each NaN."""
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def kind_of(attribute: str, there: dict[str, Any], again: dict[str, Any], written: Message) -> str:
    if there[attribute] != again[attribute]:
        assert attribute == "time"
        return "no time"
    content_type = written.message.headers.get("content-type", b"")
    if attribute == "datacontenttype":
        assert content_type == b"application/cloudevents+json"
        return "type of the envelope"
    assert attribute == "partitionkey", (attribute, written)
    assert written.message.key is not None
    return "key"


def kind_of_data(name: str, written: Message, theirs: Value, ours: Value) -> str:
    value, content_type = written.message.value or b"", ours[0].get("datacontenttype")
    if NOT_JSON.search(value):
        return "no JSON"
    if not value:
        return "empty"
    if written.unmarshaller is not None and ours[1] is None:
        return "no marshalled data"
    assert written.mode == "binary", (name, written, theirs, ours)
    if "charset" in str(content_type):
        return "charset"
    assert name != "version 1", (written, theirs, ours)
    assert implies_json(content_type)
    assert not is_json_in_version_2(content_type)
    return "JSON type"


def is_json_in_version_2(content_type: str) -> bool:
    from cloudevents.core.formats.json import JSONFormat

    return re.match(JSONFormat.JSON_CONTENT_TYPE_PATTERN, content_type) is not None


def compare(seeds: range) -> tuple[Counter[int], Counter[str]]:
    """Return how many messages of each version the SDK reads, and how many of them differ, by kind."""
    read, kinds = Counter[int](), Counter[str]()
    for seed in seeds:
        for written in sdk_events.messages(Random(seed)):
            for name, (of_sdk, here) in sdk_events.READERS.items():
                try:
                    theirs, again = of_sdk(written), of_sdk(written)
                except Exception:  # noqa: BLE001  # the SDK raises any
                    continue
                read[written.version] += 1
                try:
                    ours = here(written)
                except DecodeError as error:
                    kinds[refusal(written, theirs, again, error)] += 1
                else:
                    kinds.update(differences(name, written, theirs, again, ours))
    return read, kinds


def refusal(written: Message, theirs: Value, again: Value, error: DecodeError) -> str:
    """Return why a message that the SDK reads is refused."""
    texts = (written.message.value or b"") + str([*written.message.headers]).encode()
    if NOT_JSON.search(written.message.value or b""):
        return "no JSON"
    assert theirs[0]["id"] != again[0]["id"] or b"specversion" not in texts, (written, theirs, error)
    return "no id"


def test_a_sample_of_random_events() -> None:
    """Each difference and each refusal of a few hundred random events is one of the listed kinds."""
    read, kinds = compare(range(400))
    assert min(read[version] for version in VERSIONS) > 250
    assert kinds.keys() <= KINDS.keys()


@pytest.mark.release
def test_random_events() -> None:
    """The same of 10,000 random events, among which is each kind."""
    read, kinds = compare(range(10_000))
    assert min(read[version] for version in VERSIONS) > 8_000
    assert kinds.keys() == KINDS.keys() or not HAS_VERSION_2
    assert kinds.keys() <= KINDS.keys()


def test_the_page_lists_each_kind() -> None:
    """The page about the move has a row for each kind of difference."""
    page = (Path(__file__).parents[2] / "docs" / "porting.md").read_text("utf-8")
    assert [row for row in KINDS.values() if f"\n| {row} |" not in page] == []
