"""The captured exchanges of real brokers, from 0.8.2-beta to 4.4.0, and the sets of records in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.messages import APIS

NOT_OURS = {"0.7.2", "varint"}  # another protocol; no exchanges

# Brokers of 0.8 and 0.9 have one layout of some responses, and use it for any version.
ANSWERED_IN = {
    **{
        (f"old-apis-{broker}", number): 0
        for broker in ("0.8.2-beta", "0.8.2.2")
        for number in (1, 2, 4, 5, 7, 10, 13, 14)
    },
    **{
        ("old-apis-0.9.0.1", number): version for number, version in ((1, 0), (2, 0), (5, 1), (7, 1), (10, 1))
    },
}


class Exchange(NamedTuple):
    """A request and its response, as whole frames; ``name`` is its name or scenario in the file."""

    file: str
    number: int
    name: str | None
    request: bytes
    response: bytes | None

    @property
    def place(self) -> tuple[str, int]:
        return self.file, self.number

    @property
    def key(self) -> int:
        return int.from_bytes(self.request[4:6], "big", signed=True)

    @property
    def version(self) -> int:
        return int.from_bytes(self.request[6:8], "big", signed=True)

    def decoded_request(self) -> Any:
        return frames.decode_request(self.request[4:]).message

    def decoded_response(self) -> Any:
        version = ANSWERED_IN.get(self.place, self.version)
        return frames.decode_response(APIS[self.key].response, version, self.response[4:])[1]


def exchanges(path: Path) -> list[Exchange]:
    """Return the exchanges of a file."""
    found = []
    for number, one in enumerate(json.loads(path.read_text())["exchanges"]):
        response = None if one["response"] is None else bytes.fromhex(one["response"])
        name = one.get("name", one.get("scenario"))
        found.append(Exchange(path.stem, number, name, bytes.fromhex(one["request"]), response))
    return found


FILES = {
    path.stem: exchanges(path)
    for path in sorted((Path(__file__).parent / "vectors").glob("*.json"))
    if path.stem not in NOT_OURS
}
CAPTURED = [one for file in FILES.values() for one in file]


class RecordSet(NamedTuple):
    """A set of records with its file, exchange and direction."""

    where: str
    name: str | None
    fetched: bool
    data: bytes


def record_sets() -> Iterator[RecordSet]:
    for one in CAPTURED:
        if one.key == ApiKey.PRODUCE and one.name != "empty body":
            for topic in one.decoded_request().topic_data:
                for part in topic.partition_data:
                    yield RecordSet(one.file, one.name, fetched=False, data=part.records)
        if one.key == ApiKey.FETCH and one.response:
            for topic in one.decoded_response().responses:
                for part in topic.partitions:
                    yield RecordSet(one.file, one.name, fetched=True, data=part.records)
