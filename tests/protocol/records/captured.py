"""The sets of records in the captured exchanges of brokers and clients."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VECTORS = Path(__file__).parents[1] / "vectors"
PRODUCE, FETCH = 0, 1


class Captured(NamedTuple):
    """A set of records with its file, exchange and direction."""

    where: str
    name: str
    fetched: bool
    data: bytes


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        assert len(taken) == size
        self.at += size
        return taken

    def number(self, code: str) -> int:
        return struct.unpack(">" + code, self.take(struct.calcsize(">" + code)))[0]

    def string(self) -> bytes:
        return self.take(max(0, self.number("h")))

    def repeat(self) -> range:
        return range(max(0, self.number("i")))


def produced(frame: bytes) -> Iterator[bytes]:
    """Return the sets of a produce request, versions 0 to 3."""
    reader = Reader(frame)
    _, _, version, _ = (reader.number(code) for code in "ihhi")
    reader.string()
    if version >= 3:
        reader.string()  # transactional id
    reader.take(2 + 4)  # acks and timeout
    for _ in reader.repeat():
        reader.string()
        for _ in reader.repeat():
            reader.take(4)
            yield reader.take(reader.number("i"))
    assert reader.at == len(frame)


def fetched(frame: bytes, version: int) -> Iterator[bytes]:
    """Return the sets of a fetch response, versions 0 to 4."""
    reader = Reader(frame)
    reader.take(4 + 4 + (4 if version >= 1 else 0))  # size, correlation, throttle time
    for _ in reader.repeat():
        reader.string()
        for _ in reader.repeat():
            reader.take(4 + 2 + 8)  # partition, error, high watermark
            if version >= 4:
                reader.take(8)  # last stable offset
                for _ in reader.repeat():
                    reader.take(8 + 8)
            yield reader.take(reader.number("i"))
    assert reader.at == len(frame)


def all_sets() -> Iterator[Captured]:
    for path in sorted(VECTORS.glob("*.json")):
        content = json.loads(path.read_text())
        for exchange in content.get("exchanges", ()):
            yield from _of(path.stem, exchange)


def _of(where: str, exchange: dict) -> Iterator[Captured]:
    api, version, name = exchange.get("api_key"), exchange.get("version"), exchange.get("name")
    if api == PRODUCE and name != "empty body":
        for data in produced(bytes.fromhex(exchange["request"])):
            yield Captured(where, name, fetched=False, data=data)
    if api == FETCH and exchange["response"]:
        layout = 0 if "0.8.2" in where else version  # 0.8 answers in v0, whatever the version asked for
        for data in fetched(bytes.fromhex(exchange["response"]), layout):
            yield Captured(where, name, fetched=True, data=data)
