"""What the other SDKs write: the records of spec-conformance/samples."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cloudevents_kafka import Record

FOLDER: Final = Path(__file__).parents[2] / "spec-conformance" / "samples"
PEERS: Final = sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.jsonl.gz"))


@dataclass(frozen=True)
class PeerSample:
    """A record of a peer, its encoding, the event that the peer was asked to write, and whether it is one."""

    encoding: str
    record: Record
    event: dict[str, Any]
    is_event: bool


def read(peer: str) -> Iterator[PeerSample]:
    """Yield the samples of a peer."""
    for line in gzip.decompress((FOLDER / f"{peer}.jsonl.gz").read_bytes()).splitlines():
        kept = json.loads(line)
        record = Record(
            key=_bytes(kept["key"]),
            value=_bytes(kept["value"]),
            headers=[(name, _bytes(value)) for name, value in kept["headers"]],
        )
        is_event = not any(finding.startswith("strict: ") for finding in kept["findings"])
        yield PeerSample(kept["encoding"], record, kept["event"], is_event)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
