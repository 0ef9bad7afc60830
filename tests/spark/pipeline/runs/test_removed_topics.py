"""Topics that are removed from the list: they are named before Spark plans without them, and are forgotten.

The checkpoints are files as Spark writes them. Topic ``a`` is removed, and topic ``b`` is still read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import PipelineFailed, PipelineOptions
from cloudevents_kafka.spark.pipeline.notes import Checkpoint, OffsetRange, OffsetRanges
from cloudevents_kafka.spark.pipeline.runs._fresh_start import check_removed, forget_topics
from cloudevents_kafka.spark.pipeline.stores import LocalStore
from tests.spark.pipeline.landing.parts import ParquetParts

Ends = Mapping[str, int]  # of partition 0 of each topic
FIRST: Ends = {"a": 5, "b": 7}
BOTH: Ends = {"a": 6, "b": 8}
WITHOUT_A: Ends = {"b": 9}

# The ends of the planned batches, the number of committed ones, and where b continues.
KNOWING = {
    "no batch is planned": ((), 0, 7),
    "the first batch is planned": ((BOTH,), 0, 7),
    "the first batch has landed": ((BOTH,), 1, 7),
    "a later run without a has failed": ((BOTH, WITHOUT_A), 1, 8),
    "a run without a has failed before any batch": ((WITHOUT_A,), 0, 7),
    "as before, and Spark's last commits are missing": ((BOTH, BOTH, WITHOUT_A), 1, 8),
}
knowing = pytest.mark.parametrize(("planned", "commits", "begin"), KNOWING.values(), ids=KNOWING)


def spark_wrote(root: Path, planned: Sequence[Ends], commits: int) -> Checkpoint:
    """Return a checkpoint with these batches."""
    files: dict[str, list[Any]] = {"sources/0/0": [by_partition(FIRST)]}
    files |= {f"offsets/{number}": [{}, by_partition(ends)] for number, ends in enumerate(planned)}
    files |= {f"commits/{number}": [{}] for number in range(commits)}
    for name, lines in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["v1", *map(json.dumps, lines)]))
    (root / "metadata").write_text('{"id":"q"}')
    return Checkpoint(LocalStore(root))


def by_partition(ends: Ends) -> dict[str, Ends]:
    return {topic: {"0": end} for topic, end in ends.items()}


def begun(root: Path) -> ParquetParts:
    """Return a folder in which no batch has landed yet."""
    landing = ParquetParts(LocalStore(root))
    landing.recover()
    landing.record_beginning({"a": "A", "b": "B"}, "latest")
    return landing


def options(**others: Any) -> PipelineOptions:
    return PipelineOptions(bootstrap_servers="b:1", out="o", **{"topics": ("b",), **others})


def empty(**begins: int) -> OffsetRanges:
    return {topic: {"0": OffsetRange(begin, begin)} for topic, begin in begins.items()}


@knowing
def test_forgotten(tmp_path: Path, planned: Sequence[Ends], commits: int, begin: int) -> None:
    """Spark gets a new checkpoint if it knows the topic, also if its last plan is already without it."""
    checkpoint, landing = spark_wrote(tmp_path / "c", planned, commits), begun(tmp_path)
    forget_topics(landing.landed_so_far, checkpoint, ["a"], landing.recover)
    assert checkpoint.query_id() is None
    assert landing.landed == {"a": {}, **empty(b=begin)}


@knowing
def test_removed(tmp_path: Path, planned: Sequence[Ends], commits: int, begin: int) -> None:
    """A topic that Spark knows and the pipeline does not read is named, with what to do."""
    checkpoint = spark_wrote(tmp_path, planned, commits)
    message = (
        r"^the topics must contain a, which earlier runs have read, got b\. "
        r"To continue .* add --forget-topic a \(in Python, forget_topics=\('a',\)\)"
    )
    with pytest.raises(PipelineFailed, match=message) as failed:
        check_removed(checkpoint, options())
    assert failed.value.final
    check_removed(checkpoint, options(topics=(), topic_pattern="[b-z]"))  # Java matches it
    check_removed(checkpoint, options(topics=("a,b",)))
    check_removed(checkpoint, options(allow_data_loss=True))


def test_several(tmp_path: Path) -> None:
    """Each removed topic is named."""
    message = r"must contain a, b, .* add --forget-topic a --forget-topic b .*=\('a', 'b'\)"
    with pytest.raises(PipelineFailed, match=message):
        check_removed(spark_wrote(tmp_path, [BOTH], 1), options(topics=("c",)))


@pytest.mark.parametrize(
    ("planned", "begins"), [((WITHOUT_A,), empty(a=5, b=7)), ((BOTH, WITHOUT_A), empty(a=6, b=8))]
)
def test_back_in_the_list(tmp_path: Path, planned: Sequence[Ends], begins: OffsetRanges) -> None:
    """After a failed run without the topic, a run with it continues where the topic was, without records."""
    checkpoint, landing = spark_wrote(tmp_path / "c", planned, len(planned) - 1), begun(tmp_path)
    forget_topics(landing.landed_so_far, checkpoint, [], landing.recover, options(topics=("a", "b")).reads)
    assert checkpoint.query_id() is None
    assert landing.landed == begins


def test_left_behind(tmp_path: Path) -> None:
    """If a batch without the topic is committed, as when data loss is allowed, Spark continues without it."""
    checkpoint, landing = spark_wrote(tmp_path / "c", [BOTH, WITHOUT_A], 2), begun(tmp_path)
    check_removed(checkpoint, options())
    forget_topics(landing.landed_so_far, checkpoint, ["a"], landing.recover, options().reads)
    assert checkpoint.query_id() == "q"


def test_new_checkpoint(tmp_path: Path) -> None:
    """Without a checkpoint there is nothing to forget."""
    checkpoint, landing = Checkpoint(LocalStore(tmp_path / "c")), begun(tmp_path)
    check_removed(checkpoint, options())
    forget_topics(landing.landed_so_far, checkpoint, ["a"], landing.recover, options().reads)
    assert landing.landed == {"a": {}, "b": {}}
