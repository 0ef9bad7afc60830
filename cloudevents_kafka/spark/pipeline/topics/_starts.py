"""Finds the offsets at which a new checkpoint begins: after the landed records, or at ``start``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRanges

if TYPE_CHECKING:
    from cloudevents_kafka.spark.pipeline.topics._topics import TopicMonitor

_SYMBOLS: Final = {"earliest": -2, "latest": -1}  # Spark's numbers for these texts
_Starts = Mapping[str, Mapping[str, int]]


def find_starts(start: str, landed: OffsetRanges, topics: TopicMonitor) -> str:
    """Return Spark's option ``startingOffsets``, by which each partition begins after its landed records.

    A partition without landed records begins at the position ``start``.

    ``start`` is ``earliest``, ``latest``, or offsets as JSON. If the JSON does not contain a partition, the
    partition is read from the earliest offset. Raises `PipelineFailed` if the JSON in ``start`` contains
    partitions or offsets that the topics do not have.
    """
    has_landed = any(landed.values())
    if start in _SYMBOLS and not has_landed:
        return start
    named = {} if start in _SYMBOLS else _decoded(start)
    _check(named, topics)
    default = _SYMBOLS.get(start, _SYMBOLS["earliest"])
    starts: dict[str, dict[str, int]] = {}
    for topic, count in topics.partitions.items():
        for number in map(str, range(count)):
            range_ = landed.get(topic, {}).get(number)
            behind = named.get(topic, {}).get(number, default) if range_ is None else range_.end
            starts.setdefault(topic, {})[number] = behind
    return json.dumps(starts) if starts else start


def _decoded(start: str) -> _Starts:
    try:
        return msgspec.json.decode(start, type=dict[str, dict[str, int]])
    except msgspec.MsgspecError as error:
        raise _wrong(f'be offsets as {{"topic": {{"0": 17}}}}, got {start}: {error}') from error


def _check(named: _Starts, topics: TopicMonitor) -> None:
    """Raise `PipelineFailed` if a start contains partitions or offsets that the topics do not have."""
    for topic, numbers in named.items():
        count = topics.partitions.get(topic)
        if topic not in topics.names:
            raise _wrong(f"name topics that are read, {', '.join(topics.names)}, got {topic}")
        if not count:
            continue  # the brokers do not report the partitions
        for number, offset in numbers.items():
            if not (number.isdecimal() and int(number) < count):
                raise _wrong(f"have partitions 0 to {count - 1} of {topic}, got {number}")
            if offset < -2:
                raise _wrong(f"have an offset, -1 (latest) or -2 (earliest), got {topic}[{number}]@{offset}")
        for number, end in topics.ends(topic, numbers).items():
            if numbers[number] > end:
                raise _wrong(f"have offsets up to {end}, the end of {topic}[{number}], got {numbers[number]}")


def _wrong(rule: str) -> PipelineFailed:
    return PipelineFailed(f"the start (--from) must {rule}; correct it, and start again", final=True)
