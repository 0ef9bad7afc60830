"""A sample of `make soak`: processes with an EventProcessor, and a broker, are killed under load."""

from __future__ import annotations

import secrets
import struct
from pathlib import Path

import pytest

from cloudevents_kafka.protocol.records import Record, encode_batch
from cloudevents_kafka.protocol.records.record import COMMIT
from tests.support import soak_processor


@pytest.mark.broker
@pytest.mark.release  # test_load has a sample of a processor in each run
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_events_are_forwarded_once_through_kills() -> None:
    """After three kills at random moments each event is once in the target, for who reads committed ones."""
    soak_processor.run(kills=3, seed=secrets.randbelow(1 << 31), rate=300)


def offset_record(partition: int, offset: int) -> Record:
    name = struct.pack(">h", 1) + b"s"
    return Record(
        struct.pack(">h", 1) + name + name + struct.pack(">i", partition), struct.pack(">hq", 3, offset)
    )


def write_log(folder: Path, steps: list[tuple[int, Record | int]]) -> None:
    """Write a partition: records of producers, and the types of markers that end their transactions."""
    folder.mkdir(parents=True)
    (folder / "0.log").write_bytes(
        b"".join(
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
    )


def test_what_the_log_of_a_broker_has_as_committed(tmp_path: Path) -> None:
    """Only what has a commit marker in its own partition: a copy may have one, and its offset none."""
    copy, again = Record(b"7", b""), Record(b"8", b"")
    write_log(
        tmp_path / "data" / "copies-0",
        [(1, copy), (1, COMMIT), (2, again), (2, 1 - COMMIT), (3, copy), (3, again), (3, COMMIT), (1, again)],
    )
    write_log(
        tmp_path / "data" / "__consumer_offsets-0",
        [
            (1, offset_record(0, 100)),  # its marker is lost
            (2, offset_record(0, 100)),
            (2, 1 - COMMIT),
            (3, offset_record(0, 100)),
            (3, COMMIT),
            (3, offset_record(1, 5)),  # not ended yet
        ],
    )
    assert soak_processor.committed_copies(tmp_path) == {7: [(1, 0), (3, 0)], 8: [(3, 0)]}
    assert soak_processor.committed_offsets(tmp_path) == {(3, 0): {(0, 100)}}
