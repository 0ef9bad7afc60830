"""Counts of batches stay bounded and true, however many types there are."""

from __future__ import annotations

from cloudevents_kafka.counting import MAX_LABELS
from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.spark.pipeline import BatchCounts


def batch(types: dict[str, int]) -> BatchCounts:
    number = sum(types.values())
    return BatchCounts(read=number, events=number, by_type={name: {"binary": n} for name, n in types.items()})


def test_a_type_that_becomes_frequent_is_counted() -> None:
    """A type that comes after a thousand others is among the counts when it is frequent; sums are exact."""
    total = batch({f"early-{number}": 5 for number in range(MAX_LABELS)})
    for number in range(20):
        total = total.merge(batch({"late": 4, **{f"rare-{number}-{n}": 1 for n in range(50)}}))
    assert len(total.by_type) <= MAX_LABELS
    assert sum(total.modes.values()) == total.events == 5 * MAX_LABELS + 20 * 54
    others = total.by_type[OTHERS]["binary"]
    assert 80 - others / MAX_LABELS <= total.by_type["late"]["binary"] <= 80


def test_few_types_are_exact() -> None:
    """Up to a thousand types have their exact counts, and there are no others."""
    types = {f"t-{number}": 1 + number for number in range(MAX_LABELS)}
    total = batch(types).merge(batch(types))
    assert total.by_type == {name: {"binary": 2 * number} for name, number in types.items()}
