"""Ranges of offsets by topic and partition: what Spark planned for a batch, and what has landed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import starmap

import msgspec


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Offsets of one partition, from ``start`` up to ``end``, which is not one of them."""

    start: int
    end: int


# Topic to partition, as text, to its offsets.
Spans = Mapping[str, Mapping[str, Span]]


class Plan(msgspec.Struct, frozen=True):
    """The offsets that Spark planned for a batch, as they stand in its checkpoint."""

    batch: int
    spans: Spans


def parts(spans: Spans) -> Iterator[tuple[str, str, Span]]:
    """Yield topic, partition and offsets of each partition."""
    for topic, by_number in spans.items():
        for number, span in by_number.items():
            yield topic, number, span


def span_of(spans: Spans, topic: str, number: str) -> Span | None:
    """Return the offsets of a partition, None where there are none of it."""
    return spans.get(topic, {}).get(number)


def beyond(planned: Spans, landed: Spans) -> Spans:
    """Return the part of what was planned that lies behind what has landed; no empty ranges."""
    left: dict[str, dict[str, Span]] = {}
    for topic, number, span in parts(planned):
        before = span_of(landed, topic, number)
        start = span.start if before is None else max(span.start, before.end)
        if start < span.end:
            left.setdefault(topic, {})[number] = Span(start, span.end)
    return left


def joined(landed: Spans, planned: Spans) -> Spans:
    """Return what has landed when all of a plan has, which begins where that ends, or before."""
    all_of = {topic: dict(by_number) for topic, by_number in landed.items()}
    for topic, number, span in parts(planned):
        before = span_of(landed, topic, number) or span
        all_of.setdefault(topic, {})[number] = Span(before.start, max(before.end, span.end))
    return all_of


def as_text(spans: Spans) -> str:
    """Return ranges as text, such as ``orders[0]@17 to 41``."""
    return ", ".join(starmap(_part_as_text, parts(spans)))


def _part_as_text(topic: str, number: str, span: Span) -> str:
    return f"{topic}[{number}]@{span.start} to {span.end - 1}"
