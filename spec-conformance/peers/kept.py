"""Keep a sample of what each peer writes in ../samples, for tests and benchmarks."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from build import build
from compare import Encoding
from deviations import peers
from events import Sample, samples
from exchange import compare_record, encode_task, encodings, writable
from lines import Runner, as_record

Json = dict[str, Any]
FOLDER: Final = Path(__file__).parents[1] / "samples"
README: Final = FOLDER / "README.md"
SEED: Final = 15
COUNT: Final = 300
_ATTEMPTS: Final = 10  # events for each record: a peer may refuse most of them
_NULL_EVERY: Final = 9  # events with an attribute whose value is null

_HEAD: Final = """# Samples: what the other SDKs write

Records as the SDKs for other languages, and those for Python, write them, of the events that
[`../peers`](../peers) generates from a seed: attributes and extensions of each type, data of each kind,
times with offsets, texts that are not ASCII. The runners of `../peers` call the SDKs' own writers.
`python spec-conformance/peers --samples` writes these files again with the SDKs' toolchains, and this page.

| file | written by | versions | records: encoding (read, refused) |
|---|---|---|---|
"""
_TAIL: Final = """
A file is JSON lines, compressed with gzip. Each line is one record, with bytes in base64 and null for Kafka's null:

| member | contents |
|---|---|
| `encoding` | `binary`, or the event format of structured mode |
| `key`, `value`, `headers` | the record; headers are a list of pairs of a name and bytes |
| `event` | the event that the SDK was asked to write: `attributes` as a list of name, type and canonical text (the type `Null` and an empty text for null), `data` as null or `kind` and `base64` |
| `findings` | what differs between this event and the record, in the words of `../peers/deviations.json`; `strict: ...` if the strict reader refuses the record |

The last column counts the records that the strict reader reads as events, and those that it refuses.
"""  # noqa: E501  # rows of a table


@dataclass(frozen=True)
class _Nulled(Sample):
    """A sample that also has an attribute whose value is null."""

    null: str = "nothing"

    def notation(self) -> Json:
        """Return the event in the notation of the line protocol."""
        notation = super().notation()
        notation["attributes"].append([self.null, "Null", ""])
        return notation


def write_samples(peer: str) -> None:
    """Write the records of one peer."""
    about = peers()[peer]
    with Runner(build(peer)) as runner:
        lines = [
            line for encoding in encodings(about) for line in _records(runner, encoding, nulls=about["nulls"])
        ]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    FOLDER.mkdir(exist_ok=True)
    _file(peer).write_bytes(gzip.compress(text.encode(), mtime=0))


def _records(runner: Runner, encoding: Encoding, *, nulls: bool) -> Iterator[Json]:
    """Yield the first records that a peer writes in an encoding."""
    count = 0
    given = writable(list(samples(SEED, COUNT * _ATTEMPTS)), encoding)
    for number, sample in enumerate(given):
        event = _with_null(sample, number) if nulls and number % _NULL_EVERY == 1 else sample
        [answer] = runner.ask([encode_task(event, encoding)])
        if "error" in answer:
            continue
        yield _line(event, sample, encoding, answer["record"])
        count += 1
        if count == COUNT:
            return


def _with_null(sample: Sample, number: int) -> Sample:
    """Return a sample with a null extension, or a null attribute of the core if it has no such."""
    null = "subject" if number % 2 and sample.text("subject") is None else "nothing"
    parts = {name: getattr(sample, name) for name in Sample.__dataclass_fields__}
    return _Nulled(**parts, null=null)


def _line(event: Sample, sample: Sample, encoding: Encoding, written: Json) -> Json:
    record = as_record(written)
    found = compare_record(replace(sample, headers=[]), encoding, record).findings
    notation = event.notation()
    if notation["data"] is not None:
        notation["data"] = {"kind": sample.kind, "base64": _base64(sample.payload)}
    return {
        "encoding": encoding.name,
        "key": _base64(record.key),
        "headers": [[name, _base64(value)] for name, value in record.headers],
        "value": _base64(record.value),
        "event": notation,
        "findings": sorted(found),
    }


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def read_samples(peer: str) -> list[Json]:
    """Return the records of a peer in the notation of its file."""
    return [json.loads(line) for line in gzip.decompress(_file(peer).read_bytes()).splitlines()]


def _file(peer: str) -> Path:
    return FOLDER / f"{peer}.jsonl.gz"


def page() -> str:
    """Return the README of the samples."""
    rows = []
    for peer, about in peers().items():
        counts = _counted(read_samples(peer))
        rows.append(f"| `{_file(peer).name}` | {about['name']} | {about['versions']} | {counts} |\n")
    return _HEAD + "".join(rows) + _TAIL


def _counted(lines: Iterable[Json]) -> str:
    counts: dict[str, list[int]] = {}
    for line in lines:
        broken = any(finding.startswith("strict: ") for finding in line["findings"])
        counts.setdefault(line["encoding"], [0, 0])[broken] += 1
    return ", ".join(f"{name} ({good}, {bad})" for name, (good, bad) in counts.items())
