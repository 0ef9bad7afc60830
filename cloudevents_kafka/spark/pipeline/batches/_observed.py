"""The counts of a batch, which Spark computes with `observe` in the pass that writes the batch.

An aggregate that is passed to `observe` must return a value of a simple type. So the counts by partition and
by type are histograms in JSON. A histogram is exact if it has at least as many bins as there are different
values.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # the usual name of this module

from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, OTHERS
from cloudevents_kafka.spark._names import PREFIX
from cloudevents_kafka.spark._sql import literal
from cloudevents_kafka.spark.java.reader import is_new_sql
from cloudevents_kafka.spark.pipeline import notes
from cloudevents_kafka.spark.pipeline.tables import partition_sql

_MAX_LABELS: Final = 10_000
_RANGE: Final = PREFIX + "range"
_PLACE: Final = PREFIX + "place"
_TAIL: Final = PREFIX + "tail"
_TAIL_LENGTH: Final = 4  # offsets; the last ones may be markers of transactions
# The names and values in the rules of accepted deviations.
_NAMES: Final = re.compile(
    r"^(was read as|was ignored:|is required with|must be a string if datacontenttype is) .*"
    r"|^(header) .*( occurs more than once)"
)
_HASH_BITS: Final = 48  # a double holds 53 bits
MOST_RULES: Final = 8  # rules of one event that are counted one by one
_LONGEST_RULES: Final = 512  # characters; the names in rules are untrusted input


@dataclass(frozen=True)
class Labels:
    """Describes which rows are counted, and by which two labels each row is counted.

    The fields ``counted``, ``outer`` and ``inner`` are SQL expressions. A row is counted only if ``counted``
    is true. ``outer`` and ``inner`` are the two labels of a row.
    """

    counted: str
    outer: str
    inner: str


class Counting:
    """Describes how rows are counted: by partition, and by each kind of label.

    Spark compiles the expressions of columns, but interprets an observed aggregate for each row, which is
    slower. So most values are computed in SQL columns (see `columns`) that are added to the rows. The method
    `counts` returns a single aggregate of these columns.
    """

    def __init__(self, offsets: notes.OffsetRanges, labels: Mapping[str, Labels], *, by_java: bool) -> None:
        """Describe the counts; ``by_java`` says whether the session has the Java functions."""
        columns = _partition_columns(offsets)
        self._aggregates = [
            "count(1) AS records",
            "unix_millis(max(`timestamp`)) AS newest",
            f"{_bins(_PLACE, 1 + sum(1 for _ in notes.iter_partitions(offsets)))} AS places",
            f"collect_set({_TAIL}) AS tails",
        ]
        for number, (kind, of) in enumerate(labels.items()):
            code = (
                f"CASE WHEN {of.counted} THEN xxhash64({of.outer}, {of.inner}) & {(1 << _HASH_BITS) - 1}L END"
            )
            is_named = is_new_sql(number, code, _MAX_LABELS + 1) if by_java else of.counted
            outer = f"substring({of.outer}, 1, {MAX_KEY_LENGTH})"
            label = f"struct({code} AS code, {outer} AS `outer`, {of.inner} AS `inner`)"
            counts, names = f"{PREFIX}{kind}_counts", f"{PREFIX}{kind}_names"
            columns |= {counts: code, names: f"CASE WHEN {is_named} THEN {label} END"}
            self._aggregates += [
                f"{_bins(counts, _MAX_LABELS)} AS {kind}_counts",
                f"collect_set({names}) AS {kind}_names",
            ]
        self.names = tuple(columns)
        self.columns = [f"{value} AS {name}" for name, value in columns.items()]

    def counts(self, *also: str) -> Column:
        """Return the aggregate to observe; with any session settings, its value is JSON without null fields.

        The parameter ``also`` contains further aggregates in SQL, each with a name.
        """
        counts = ", ".join((*self._aggregates, *also))
        return F.expr(f"to_json(struct({counts}), map('ignoreNullFields', 'true')) AS counts")


def _bins(number: str, bins: int) -> str:
    return f"histogram_numeric(CAST({number} AS DOUBLE), {max(2, bins)})"


def _partition_columns(offsets: notes.OffsetRanges) -> dict[str, str]:
    """Return SQL for three columns of a record: the range of its partition, an index, and a tail.

    The index is the number of this range in ``offsets``, or -1 if the offset of the record is outside this
    range. If the offset of the record is one of the last offsets of the range, the tail contains the record's
    topic, partition and time. For all other records, the tail is null.
    """
    known: dict[str, dict[str, tuple[int, int, int]]] = {}
    for number, (topic, partition, range_) in enumerate(notes.iter_partitions(offsets)):
        known.setdefault(topic, {})[partition] = (range_.start, range_.end, number)
    start, end, index = (f"{_RANGE}[{number}]" for number in range(3))
    is_within = f"`offset` >= {start} AND `offset` < {end}"
    is_last = f"{end} - `offset` BETWEEN 1 AND {_TAIL_LENGTH}"
    time = "struct(`topic`, `partition`, unix_millis(`timestamp`) AS millis)"
    return {
        _RANGE: partition_sql(known),
        _PLACE: f"CASE WHEN {is_within} THEN {index} ELSE -1 END",
        _TAIL: f"CASE WHEN {is_last} THEN {time} END",
    }


def partition_counts(
    observed: Mapping[str, Any], offsets: notes.OffsetRanges
) -> dict[str, dict[str, notes.PartitionCounts]]:
    """Return the counts by topic and partition.

    Raises `CountMismatch` if Spark has read records outside ``offsets``, or has read a record twice.
    """
    bins = _bin_counts(observed, "places")
    newest: dict[tuple[str, str], int] = {}
    for tail in observed.get("tails", ()):
        place = tail["topic"], str(tail["partition"])
        newest[place] = max(newest.get(place, 0), tail.get("millis", 0))
    if bins[-1]:
        raise notes.CountMismatch(
            f"the batch was to land {notes.format_ranges(offsets)}, but {bins[-1]:,} other records "
            "were read: the checkpoint was changed while it is in use. "
            "Start again; if that does not help, land into a fresh folder with a fresh checkpoint"
        )
    counts: dict[str, dict[str, notes.PartitionCounts]] = {}
    for number, (topic, partition, range_) in enumerate(notes.iter_partitions(offsets)):
        records = bins[number]
        if records > range_.end - range_.start:
            raise notes.CountMismatch(
                f"{topic}[{partition}]@{range_.start} to {range_.end - 1} must have at most "
                f"{range_.end - range_.start:,} records, got {records:,}: some records were read twice. "
                "Start again"
            )
        last = newest.get((topic, partition)) or None
        found = notes.PartitionCounts(range_.start, range_.end - 1, records, landed_by_now(last))
        counts.setdefault(topic, {})[partition] = found
    return counts


def landed_by_now(millis: int | None) -> int | None:
    """Return the timestamp of a record; if the timestamp is in the future, return the current time."""
    return None if millis is None else min(millis, round(time.time() * 1000))


def label_counts(observed: Mapping[str, Any], kind: str) -> dict[str, dict[str, int]]:
    """Return the counts by outer label and inner label.

    If there are too many labels, the result has a single count, `OTHERS`, for all rows. If labels have the
    same hash, their rows are counted together, under the first of these labels.
    """
    bins = _bin_counts(observed, f"{kind}_counts")
    names = observed[f"{kind}_names"]
    if len(names) > _MAX_LABELS:
        return {OTHERS: {OTHERS: sum(bins.values())}}
    counts: dict[str, dict[str, int]] = {}
    ordered = sorted(names, key=itemgetter("outer", "inner"), reverse=True)
    for code, name in {name["code"]: name for name in ordered}.items():
        inner = counts.setdefault(name["outer"], {})
        inner[name["inner"]] = inner.get(name["inner"], 0) + bins[code]
    return counts


def rule_counts(labels: Mapping[str, Mapping[str, int]], most: int) -> dict[str, dict[str, int]]:
    """Return the counts of broken rules by clause and rule; `tolerated_rules` describes the labels.

    If a label contains the same rule twice, the rule is counted once. If a label has more rules than the
    limit ``most``, the rules beyond the limit are counted together, under `OTHERS`.
    """
    counts: dict[str, Counter[str]] = {}
    for clauses, by_rules in labels.items():
        for rules, number in by_rules.items():
            for clause, rule in _pair(clauses.split(","), rules.split("\n"), most):
                counts.setdefault(clause, Counter())[rule] += number
    return {clause: dict(rules) for clause, rules in counts.items()}


def _pair(clauses: list[str], rules: list[str], most: int) -> Iterable[tuple[str, str]]:
    """Return each pair of a clause and a rule once; names and values in the rules are removed."""
    if len(rules) != len(clauses):  # the texts were cut, or a name has a newline
        return dict.fromkeys((clause, OTHERS) for clause in clauses)
    pairs = [(clause, _NAMES.sub(r"\1\2\3", rule)) for clause, rule in zip(clauses, rules, strict=True)]
    return dict.fromkeys(pairs if len(pairs) <= most else [*pairs[:most], (OTHERS, OTHERS)])


def _bin_counts(observed: Mapping[str, Any], name: str) -> Counter[int]:
    """Return the counts in a histogram, which may have several bins for the same number."""
    counts: Counter[int] = Counter()
    for bin_ in observed.get(name, ()):
        counts[round(bin_["x"])] += round(bin_["y"])
    return counts


def tolerated_rules(tolerated: str) -> tuple[str, str]:
    """Return two SQL expressions for the broken rules that lenient reading has accepted in an event.

    The first expression joins the clauses with commas. The second expression joins the rules with newlines.
    If an event breaks more than `MOST_RULES` rules, the expressions contain the first `MOST_RULES` rules and
    one further rule, which stands for all remaining rules.
    """
    few = f"slice({tolerated}, 1, {MOST_RULES + 1})"
    newline = literal("\n")
    return (
        f"array_join({few}.clause, ',')",
        f"substring(array_join({few}.rule, {newline}), 1, {_LONGEST_RULES})",
    )


def texts_of_tolerated(tolerated: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """Return the two texts that the SQL of `tolerated_rules` computes, for one event."""
    few = tolerated[: MOST_RULES + 1]
    rules = "\n".join(problem["rule"] for problem in few)
    return ",".join(problem["clause"] for problem in few), rules[:_LONGEST_RULES]
