"""The records of spec-conformance/samples, which the SDKs of other languages wrote."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from _sdk import JSON, message_of
from _timing import time_by_turns
from cloudevents.core.bindings.kafka import from_kafka

from cloudevents_kafka import DecodeError, Record, from_record

Work = Callable[[], object]

FOLDER: Final = Path(__file__).parents[1] / "spec-conformance" / "samples"


@dataclass(frozen=True)
class Sample:
    """A record of a peer and its encoding; ``is_event`` is whether strict reading accepts it."""

    peer: str
    encoding: str
    record: Record
    is_event: bool

    @property
    def read(self) -> Callable[[], object]:
        """The work of reading the record, leniently if it is not an event by the rules."""
        return partial(from_record, self.record, **({} if self.is_event else {"lenient": True}))


def peer_samples() -> Iterator[Sample]:
    """Yield the records that are events, strictly or leniently."""
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        peer = path.name.partition(".")[0]
        for line in gzip.decompress(path.read_bytes()).splitlines():
            members = json.loads(line)
            record = _record(members)
            if _is_event(record):
                yield Sample(peer, members["encoding"], record, is_event=True)
            elif _is_event(record, lenient=True):
                yield Sample(peer, members["encoding"] + ", leniently", record, is_event=False)


def _record(members: dict[str, Any]) -> Record:
    headers = [(name, _bytes(value)) for name, value in members["headers"]]
    return Record(key=_bytes(members["key"]), value=_bytes(members["value"]), headers=headers)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _is_event(record: Record, *, lenient: bool = False) -> bool:
    try:
        from_record(record, lenient=lenient)
    except DecodeError:
        return False
    return True


def time_repeatedly(samples: list[Sample], rounds: int) -> list[float]:
    """Return the ratio for each record, read some times by turns with the SDK."""
    ratios = []
    for sample in samples:
        ours, theirs = time_by_turns(
            sample.read, _their_read(sample), rounds=rounds, calls=15, their_calls=5, collect=False
        )
        ratios.append(statistics.median(theirs) / statistics.median(ours))
    return ratios


def time_in_order(samples: list[Sample], rounds: int) -> tuple[list[float], list[float]]:
    """Return the median seconds of each record, ours and the SDK's, in the order of a topic.

    Each round reads all records once with either library.
    """
    own = [sample.read for sample in samples]
    other = [_their_read(sample) for sample in samples]
    ours = [[0.0] * rounds for _ in samples]
    theirs = [[0.0] * rounds for _ in samples]
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            _time_each(own, ours, number)
            _time_each(other, theirs, number)
    finally:
        gc.enable()
    return [statistics.median(times) for times in ours], [statistics.median(times) for times in theirs]


def _their_read(sample: Sample) -> Work:
    """Return the SDK's way to read a record, or the nearest that it can read."""
    return partial(from_kafka, message_of(sample.record)[0], JSON)


def _time_each(works: list[Work], times: list[list[float]], number: int) -> None:
    clock = time.perf_counter
    for work, own in zip(works, times, strict=True):
        start = clock()
        work()
        end = clock()
        own[number] = end - start
