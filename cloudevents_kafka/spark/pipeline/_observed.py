"""The counts of a batch, observed by Spark in the pass that writes it.

Aggregates of `observe` must return a value of a simple type, so counts by partition and by type are
histograms in JSON, which are exact while they have as many bins as there are values.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH
from cloudevents_kafka.spark.pipeline._counts import OTHERS, CountMismatch, PartitionCounts
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges, format_ranges, iter_partitions

_MAX_LABELS: Final = 10_000
_MOST_COLUMNS: Final = 16  # one for each partition; more partitions are a histogram
# The names and values in the rules of what lenient reading accepts.
_NAMES: Final = re.compile(
    r"^(was read as|was ignored:|is required with|must be a string if datacontenttype is) .*"
    r"|^(header) .*( occurs more than once)"
)
_HASH_BITS: Final = 48  # a double has 53


@dataclass(frozen=True)
class Labels:
    """The rows that are counted by two labels, which are columns of text."""

    counted: Column
    outer: Column
    inner: Column


def metrics(offsets: OffsetRanges, labels: Mapping[str, Labels]) -> list[Column]:
    """Return the aggregates of records with these offsets: by partition, and by each kind of labels."""
    number = _partition_number(offsets)
    partitions = max(2, sum(1 for _ in iter_partitions(offsets)))
    columns = [F.count_if(number.isNull()).alias("outside")]
    if partitions <= _MOST_COLUMNS:
        columns += [F.count_if(number == place).alias(f"partition_{place}") for place in range(partitions)]
    else:
        columns.append(_bins(number, partitions).alias("partitions"))
    for kind, of in labels.items():
        code = F.xxhash64(of.outer, of.inner).bitwiseAND(F.lit((1 << _HASH_BITS) - 1))
        outer = F.substring(of.outer, 1, MAX_KEY_LENGTH).alias("outer")
        label = F.struct(code.alias("code"), outer, of.inner.alias("inner"))
        columns += [
            _bins(F.when(of.counted, code), _MAX_LABELS).alias(f"{kind}_counts"),
            F.to_json(F.collect_set(F.when(of.counted, label))).alias(f"{kind}_names"),
        ]
    return columns


def _bins(number: Column, bins: int) -> Column:
    return F.to_json(F.histogram_numeric(number.cast("double"), F.lit(bins)))


def _partition_number(offsets: OffsetRanges) -> Column:
    """Return the place of a record's partition in the offsets, null if its offset is not among them."""
    found = "CAST(NULL AS INT)"
    for topic, numbers in _numbers(offsets).items():
        size = max(numbers) + 1
        ranges = [offsets[topic].get(str(partition)) for partition in range(size)]
        starts, ends, places = (
            f"array({', '.join(map(str, values))})[partition]"
            for values in (
                [f"{0 if range_ is None else range_.start}L" for range_ in ranges],
                [f"{0 if range_ is None else range_.end}L" for range_ in ranges],
                [numbers.get(partition, -1) for partition in range(size)],
            )
        )
        # Kafka allows no character in a topic's name that SQL would escape.
        is_within = f"topic = '{topic}' AND partition < {size} AND offset >= {starts} AND offset < {ends}"
        found = f"CASE WHEN {is_within} THEN {places} ELSE {found} END"
    return F.expr(found)  # one call of Java, instead of one for each number


def _numbers(offsets: OffsetRanges) -> dict[str, dict[int, int]]:
    """Return a number for each partition, by topic and partition."""
    numbers: dict[str, dict[int, int]] = {}
    for number, (topic, partition, _) in enumerate(iter_partitions(offsets)):
        numbers.setdefault(topic, {})[int(partition)] = number
    return numbers


def partition_counts(
    observed: Mapping[str, Any], offsets: OffsetRanges
) -> dict[str, dict[str, PartitionCounts]]:
    """Return the counts by topic and partition; raise `CountMismatch` if other records were read."""
    if observed["outside"]:
        raise CountMismatch(
            f"the batch was to land {format_ranges(offsets)}, but {observed['outside']:,} other records "
            "were read: the checkpoint was changed while it is in use. "
            "Start again; if that does not help, land into a fresh folder with a fresh checkpoint"
        )
    bins = _parse(observed["partitions"]) if "partitions" in observed else Counter[int]()
    counts: dict[str, dict[str, PartitionCounts]] = {}
    for number, (topic, partition, range_) in enumerate(iter_partitions(offsets)):
        records = observed.get(f"partition_{number}", bins[number])
        if records > range_.end - range_.start:
            raise CountMismatch(
                f"{topic}[{partition}]@{range_.start} to {range_.end - 1} must have at most "
                f"{range_.end - range_.start:,} records, got {records:,}: some were read twice. Start again"
            )
        counts.setdefault(topic, {})[partition] = PartitionCounts(range_.start, range_.end - 1, records)
    return counts


def label_counts(observed: Mapping[str, Any], kind: str) -> dict[str, dict[str, int]]:
    """Return the counts by outer and inner label; `OTHERS` has all if they are too many."""
    bins = _parse(observed[f"{kind}_counts"])
    names = json.loads(observed[f"{kind}_names"] or "[]")
    if len(names) > _MAX_LABELS:
        return {OTHERS: {OTHERS: sum(bins.values())}}
    counts: dict[str, dict[str, int]] = {}
    for name in names:
        inner = counts.setdefault(name["outer"], {})
        inner[name["inner"]] = inner.get(name["inner"], 0) + bins[name["code"]]
    return counts


def rule_counts(labels: Mapping[str, Mapping[str, int]], most: int) -> dict[str, dict[str, int]]:
    """Return the counts by clause and rule of labels that are `tolerated_rules`.

    Only the first ``most`` rules of a label are counted one by one, each once.
    """
    counts: dict[str, Counter[str]] = {}
    for clauses, by_rules in labels.items():
        for rules, number in by_rules.items():
            for clause, rule in _pair(clauses.split(","), rules.split("\n"), most):
                counts.setdefault(clause, Counter())[rule] += number
    return {clause: dict(rules) for clause, rules in counts.items()}


def _pair(clauses: list[str], rules: list[str], most: int) -> Iterable[tuple[str, str]]:
    """Return pairs of clause and rule, without names and values, each once."""
    if len(rules) != len(clauses):  # cut, or with a newline in a name
        return dict.fromkeys((clause, OTHERS) for clause in clauses)
    pairs = [(clause, _NAMES.sub(r"\1\2\3", rule)) for clause, rule in zip(clauses, rules, strict=True)]
    return dict.fromkeys(pairs if len(pairs) <= most else [*pairs[:most], (OTHERS, OTHERS)])


def _parse(text: str | None) -> Counter[int]:
    """Return the counts in a histogram, which may have several bins for one number."""
    counts: Counter[int] = Counter()
    for bin_ in json.loads(text or "[]"):
        counts[round(bin_["x"])] += round(bin_["y"])
    return counts
