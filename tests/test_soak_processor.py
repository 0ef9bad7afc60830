"""A sample of `make soak`: processes with an EventProcessor, and a broker, are killed under load."""

from __future__ import annotations

import secrets
import struct
from pathlib import Path

import pytest
import soak_processor

from cloudevents_kafka.protocol.records import COMMIT, Record, encode_batch


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_events_are_forwarded_once_through_kills() -> None:
    """After ten kills at random moments each event is once in the target, for who reads committed ones."""
    soak_processor.run(kills=10, seed=secrets.randbelow(1 << 31), rate=300)


def offset_record(partition: int, offset: int) -> Record:
    name = struct.pack(">h", 1) + b"s"
    return Record(
        struct.pack(">h", 1) + name + name + struct.pack(">i", partition), struct.pack(">hq", 3, offset)
    )


def test_offsets_without_a_commit_marker_are_found(tmp_path: Path) -> None:
    """They are those that were sent in transactions and not committed, so far as the log says it."""
    steps = [
        (1, offset_record(0, 100)),
        (1, COMMIT),
        (1, offset_record(0, 200)),  # its marker is lost
        (2, offset_record(1, 50)),
        (2, 1 - COMMIT),
        (3, offset_record(0, 200)),
        (3, COMMIT),
        *[(producer, step) for producer in (4, 5, 6) for step in (offset_record(2, 9), COMMIT)][:-1],
    ]
    data = b"".join(
        encode_batch(
            [step if isinstance(step, Record) else Record(struct.pack(">hh", 0, step), bytes(6))],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
            is_control=not isinstance(step, Record),
        )
        for producer, step in steps
    )
    folder = tmp_path / "data" / "__consumer_offsets-0"
    folder.mkdir(parents=True)
    (folder / "0.log").write_bytes(data)
    assert soak_processor.lost_offsets(tmp_path) == {(0, 200), (1, 50)}
