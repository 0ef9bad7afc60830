"""Exchanges events with a peer, and gives what was found for each: in memory, record by record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compare import Way, describe, event_findings, record_findings
from events import Sample
from lines import Runner, as_record, as_task

from cloudevents_kafka import BrokenEvent, Decoded, NotAnEvent, Record, decode, formats, to_record

Json = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """One event on one way in one direction, and what was found; nothing is well.

    ``direction`` is "reads" where the peer read what we wrote, "writes" where we read what it wrote.
    ``said`` is the peer's error, and what our strict reader said.
    """

    sample: Sample
    direction: str
    way: str
    findings: frozenset[str]
    said: str = ""


def ways(peer: Json) -> list[Way]:
    """Give binary mode, and each event format that the peer and this library both have."""
    return [Way("binary"), *(Way(name) for name in peer["formats"] if name in formats.names())]


def holdable(samples: Sequence[Sample], way: Way) -> list[Sample]:
    """Leave out what no writer of the format could write: Protobuf's timestamps have no leap seconds."""
    return [one for one in samples if way.name != "protobuf" or "time:leap" not in one.features]


def exchange(runner: Runner, samples: Sequence[Sample], way: Way) -> Iterator[Exchange]:
    """Exchange all samples that the format can hold, in both directions."""
    samples = holdable(samples, way)
    yield from judge_read(samples, way, runner.ask(as_task(our_record(sample, way)) for sample in samples))
    yield from judge_written(samples, way, runner.ask(encode_task(sample, way) for sample in samples))


def our_record(sample: Sample, way: Way) -> Record:
    """Write a sample ourselves."""
    format = None if way.mode == "binary" else way.name
    return to_record(sample.event(), mode=way.mode, format=format, key=sample.key, headers=sample.headers)


def encode_task(sample: Sample, way: Way) -> Json:
    """Write the task for a peer to write a sample."""
    key = None if sample.key is None else sample.key.hex()
    return {"op": "encode", "event": sample.notation(), "mode": way.mode, "format": way.name, "key": key}


def judge_read(samples: Iterable[Sample], way: Way, answers: Iterable[Json]) -> Iterator[Exchange]:
    """Judge what a peer read of our records."""
    for sample, answer in zip(samples, answers, strict=True):
        error = answer.get("error")
        found = ["refused"] if error else event_findings(sample, answer["event"], way, by_peer=False)
        yield Exchange(sample, "reads", way.name, frozenset(found), error or "")


def judge_written(samples: Iterable[Sample], way: Way, answers: Iterable[Json]) -> Iterator[Exchange]:
    """Judge what we read of a peer's records."""
    for sample, answer in zip(samples, answers, strict=True):
        if "error" in answer:
            yield Exchange(sample, "writes", way.name, frozenset(["refused"]), answer["error"])
        else:
            yield judge_record(sample, way, as_record(answer["record"]))


def judge_record(sample: Sample, way: Way, record: Record) -> Exchange:
    """Judge what we read of a record: strictly, and leniently where strictly it is refused."""
    found = list(record_findings(sample, record))
    said = ""
    result = decode(record)
    lenient = decode(record, lenient=True)
    if isinstance(result, Decoded):
        if not (isinstance(lenient, Decoded) and lenient.event == result.event):
            found.append("lenient: reads otherwise than strict")
    else:
        said = str(result.error)
        found += [f"strict: {verdict}" for verdict in _verdicts(result.error)]
        result = lenient
    if isinstance(result, Decoded):
        found += event_findings(sample, describe(result.event), way, by_peer=True)
    else:
        found += [f"lenient: {verdict}" for verdict in _verdicts(result.error)]
    return Exchange(sample, "writes", way.name, frozenset(found), said)


def _verdicts(error: Exception) -> list[str]:
    if isinstance(error, NotAnEvent):
        return ["not an event"]
    if isinstance(error, BrokenEvent):
        return [f"refused for {problem.clause}" for problem in error.problems]
    return [type(error).__name__]
