"""Exchange events with a peer in memory, record by record, and return the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compare import Encoding, describe, event_findings, record_findings
from events import Sample
from lines import Runner, as_record, as_task

from cloudevents_kafka import BrokenEvent, Decoded, DecodeError, Record, decode, to_record
from cloudevents_kafka.formats import registry as formats

Json = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """One event in one encoding and direction, with its findings, which are empty if it is preserved.

    ``direction`` is "reads" if the peer read it, "writes" if the peer wrote it. ``error`` is the error
    of the peer or of the strict reader of this library.
    """

    sample: Sample
    direction: str
    encoding: str
    findings: frozenset[str]
    error: str = ""


def encodings(peer: Json) -> list[Encoding]:
    """Return binary mode and each event format that both the peer and this library support."""
    return [Encoding("binary"), *(Encoding(name) for name in peer["formats"] if name in formats.names())]


def writable(samples: Sequence[Sample], encoding: Encoding) -> list[Sample]:
    """Return the samples that a format can express: a Protobuf timestamp cannot be a leap second (P-02)."""
    return [one for one in samples if encoding.name != "protobuf" or "time:leap" not in one.features]


def exchange(runner: Runner, samples: Sequence[Sample], encoding: Encoding) -> Iterator[Exchange]:
    """Exchange the samples that the format can express, in both directions."""
    samples = writable(samples, encoding)
    yield from compare_read(
        samples, encoding, runner.ask(as_task(own_record(sample, encoding)) for sample in samples)
    )
    yield from compare_written(
        samples, encoding, runner.ask(encode_task(sample, encoding) for sample in samples)
    )


def own_record(sample: Sample, encoding: Encoding) -> Record:
    """Return the record of a sample as this library writes it."""
    format = None if encoding.mode == "binary" else encoding.name
    return to_record(
        sample.event(), mode=encoding.mode, format=format, key=sample.key, headers=sample.headers
    )


def encode_task(sample: Sample, encoding: Encoding) -> Json:
    """Return the task for a peer to write a sample."""
    key = None if sample.key is None else sample.key.hex()
    return {
        "op": "encode",
        "event": sample.notation(),
        "mode": encoding.mode,
        "format": encoding.name,
        "key": key,
    }


def compare_read(
    samples: Iterable[Sample], encoding: Encoding, answers: Iterable[Json]
) -> Iterator[Exchange]:
    """Yield the findings of events that the peer read."""
    for sample, answer in zip(samples, answers, strict=True):
        error = answer.get("error")
        found = ["refused"] if error else event_findings(sample, answer["event"], encoding, by_peer=False)
        yield Exchange(sample, "reads", encoding.name, frozenset(found), error or "")


def compare_written(
    samples: Iterable[Sample], encoding: Encoding, answers: Iterable[Json]
) -> Iterator[Exchange]:
    """Yield the findings of records that the peer wrote."""
    for sample, answer in zip(samples, answers, strict=True):
        if "error" in answer:
            yield Exchange(sample, "writes", encoding.name, frozenset(["refused"]), answer["error"])
        else:
            yield compare_record(sample, encoding, as_record(answer["record"]))


def compare_record(sample: Sample, encoding: Encoding, record: Record) -> Exchange:
    """Return the findings of a record that the peer wrote, read strictly, or leniently if refused."""
    found = list(record_findings(sample, record))
    message = ""
    result = decode(record)
    lenient = decode(record, lenient=True)
    if isinstance(result, Decoded):
        if not (isinstance(lenient, Decoded) and lenient.event == result.event):
            found.append("lenient: differs from strict")
    else:
        message = str(result.error)
        found += [f"strict: {verdict}" for verdict in _reasons(result.error)]
        result = lenient
    if isinstance(result, Decoded):
        found += event_findings(sample, describe(result.event), encoding, by_peer=True)
    else:
        found += [f"lenient: {verdict}" for verdict in _reasons(result.error)]
    return Exchange(sample, "writes", encoding.name, frozenset(found), message)


def _reasons(error: DecodeError) -> list[str]:
    if isinstance(error, BrokenEvent):
        return [f"refused for {problem.clause}" for problem in error.problems]
    return [error.verdict.replace("-", " ")]
