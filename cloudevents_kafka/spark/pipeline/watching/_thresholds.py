"""Thresholds of a pipeline: limits for a topic's lag and for a topic's share of quarantined records.

Thresholds follow these rules, which ``tests/spark/pipeline/watching/test_thresholds.py`` tests with random
sequences of batches:

1. Each threshold is checked for each topic, independently of other thresholds and topics.
2. The share of records in the quarantine is computed for the newest records of a topic, which are called the
   window. A window with a length in seconds contains the batches that were reported in the last ``seconds``
   seconds. A window with a length in records contains only as many of the newest batches as are necessary to
   have at least ``records`` records. If all batches of the topic in this run together have fewer than
   ``records`` records, the share is 0. The batches in a window are counted in groups; each group covers about
   one hundredth of the window. So a window has few groups, and all records of a group leave the window at the
   same time.
3. A threshold is crossed if the value is above the limit, and was not above the limit at the previous check.
   So a threshold is not crossed again while the value stays above the limit.
4. A new run begins with empty windows and without crossed thresholds. So in a new run, a threshold is crossed
   again if the value is still above the limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, Self

import msgspec

from cloudevents_kafka.spark.pipeline._errors import PipelineError
from cloudevents_kafka.spark.pipeline.notes import BatchCounts
from cloudevents_kafka.spark.pipeline.watching._figures import Lags

_PARTS: Final = 100  # the number of groups in a window
_UNITS: Final[Mapping[str, float]] = {"s": 1, "m": 60, "h": 3600, "%": 0.01, "": 1}
_FIGURES: Final = ("quarantine", "lag_records", "lag_seconds")
_ACTIONS: Final = ("warn", "end", "stop")
_TEXT: Final = re.compile(
    r"(quarantine|lag)\s*>\s*(\d+(?:\.\d+)?)([smh%]?)(?:/(\d+)([smh]?))?(?::(warn|end|stop))?"
)


class ThresholdCrossed(PipelineError):
    """The action of a threshold has ended the run.

    All batches that the run has read have landed, and the next run continues after these batches.

    Examples:
        >>> from cloudevents_kafka.spark import EventPipeline, PipelineOptions, Threshold
        >>> from cloudevents_kafka.spark.pipeline import ThresholdCrossed
        >>> options = PipelineOptions(
        ...     bootstrap_servers="localhost:9092",
        ...     topics=("orders",),
        ...     out="lake/",
        ...     once=True,
        ...     thresholds=(Threshold.parse("quarantine>5%/1000:end"),),
        ... )
        >>> try:
        ...     events = EventPipeline(options, spark=spark).run().counts.events
        ... except ThresholdCrossed as error:
        ...     print(error)
    """


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """A limit for each topic, and the action if a topic exceeds it; raises `ValueError` for a wrong limit.

    ``figure`` is the name of the value: "quarantine", "lag_records" or "lag_seconds". "quarantine" is the
    share of a window's records that are not events. The window contains the last ``seconds`` seconds, or the
    last ``records`` records. "lag_records" is the number of offsets from the landed records of a topic to the
    topic's end. "lag_seconds" is the age of the newest landed record in a partition, if the partition has
    more records to read. ``action`` is executed each time the value rises above the limit of the threshold:
    "warn" issues a warning, "end" ends the run with `ThresholdCrossed`, and "stop" continues the run without
    the topic.

    Examples:
        >>> from cloudevents_kafka.spark import Threshold
        >>> Threshold.parse("quarantine>5%/10m:stop")
        Threshold(figure='quarantine', above=0.05, seconds=600, records=None, action='stop')
        >>> Threshold.parse("lag>100000") == Threshold(figure="lag_records", above=100_000)
        True
    """

    figure: Literal["quarantine", "lag_records", "lag_seconds"]
    above: float
    seconds: float | None = None
    records: int | None = None
    action: Literal["warn", "end", "stop"] = "warn"

    def __post_init__(self) -> None:
        windows = [size for size in (self.seconds, self.records) if size is not None]
        of_share = self.figure == "quarantine"
        is_known = self.figure in _FIGURES and self.action in _ACTIONS
        has_window = len(windows) == of_share and all(size > 0 for size in windows)
        if not (is_known and has_window and 0 <= self.above < (1 if of_share else math.inf)):
            raise ValueError(
                "a threshold must have the figure quarantine, a limit below 1 and one window, or the figure "
                f"lag_records or lag_seconds and no window; and the action warn, end or stop, got {self}"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the threshold for a text such as ``quarantine>5%/10m:end``, ``lag>100000``, ``lag>5m:stop``.

        The unit of a window is seconds, minutes or hours (``s``, ``m``, ``h``); without a unit, the window is
        a number of records.
        """
        found = _TEXT.fullmatch(text)
        name, limit, unit, size, span, action = found.groups() if found else ("",) * 6
        if found is None or (name == "quarantine") is not (unit == "%"):
            raise ValueError(
                "a threshold must be quarantine>SHARE%/WINDOW or lag>LIMIT, then :warn, :end or :stop, such "
                f"as quarantine>5%/10m:end or lag>100000, got {text!r}"
            )
        figure = {"%": "quarantine", "": "lag_records"}.get(unit, "lag_seconds")
        fields: dict[str, Any] = {"figure": figure, "above": float(limit) * _UNITS[unit]}
        if size:
            fields |= {"seconds": int(size) * _UNITS[span]} if span else {"records": int(size)}
        if action:
            fields["action"] = action
        return cls(**fields)


class Crossing(NamedTuple):
    """A topic whose value is above the limit of a threshold, but was not above it at the previous check."""

    topic: str
    value: float
    threshold: Threshold

    def __str__(self) -> str:
        of, found = self.threshold, f"topic {self.topic} is {self.value:,.0f}"
        if of.figure == "quarantine":
            window = f"{of.records:,} records" if of.records else f"{of.seconds:,.0f} s"
            share, most = f"{self.value:.1%} of the last {window}", f"{of.above * 100:g}%"
            return f"topic {self.topic} has {share} in the quarantine, above {most}"
        return f"{found} {'offsets' if of.figure == 'lag_records' else 's'} behind, above {of.above:,.0f}"


class _Window:
    """Counts the newest records of a topic; batches are counted in groups.

    Each group stores the time of its first batch, the number of its records, and the number of its records
    that are not events.
    """

    def __init__(self, of: Threshold) -> None:
        self._of = of
        self._parts: list[tuple[float, int, int]] = []

    def add(self, now: float, read: int, quarantined: int) -> None:
        time = now
        if self._parts and self._has_room(now):
            time, known, others = self._parts.pop()
            read, quarantined = read + known, quarantined + others
        self._parts.append((time, read, quarantined))
        self._forget(now)

    def _has_room(self, now: float) -> bool:
        time, read, _ = self._parts[-1]
        if self._of.records:
            return read < self._of.records / _PARTS
        return now - time < (self._of.seconds or 0) / _PARTS

    def _forget(self, now: float) -> None:
        parts, of = self._parts, self._of
        while parts and of.seconds and parts[0][0] <= now - of.seconds:
            del parts[0]
        while of.records and sum(part[1] for part in parts[1:]) >= of.records:
            del parts[0]

    def share(self, now: float) -> float:
        self._forget(now)
        read = sum(part[1] for part in self._parts)
        is_full = read >= (self._of.records or 1)
        return sum(part[2] for part in self._parts) / read if is_full else 0.0


class Thresholds:
    """The thresholds of a run, and the set of those thresholds whose limits are exceeded now."""

    def __init__(self, thresholds: Iterable[Threshold]) -> None:
        self._thresholds = tuple(thresholds)
        self._windows: dict[Threshold, dict[str, _Window]] = {
            threshold: {} for threshold in self._thresholds if threshold.figure == "quarantine"
        }
        self._crossed: set[tuple[str, Threshold]] = set()

    def add(self, counts: BatchCounts, now: float) -> None:
        """Add the counts of a batch; ``now`` is the time of the batch's report, in seconds."""
        for topic, parts in counts.offsets.items():
            read = sum(part.records for part in parts.values())
            for threshold, windows in self._windows.items() if read else ():
                window = windows.setdefault(topic, _Window(threshold))
                window.add(now, read, counts.quarantined_by_topic.get(topic, 0))

    def look(self, lags: Lags, now: float) -> list[Crossing]:
        """Return the thresholds that have been crossed since the last check, in order."""
        found = []
        for threshold in self._thresholds:
            for topic, value in self._values(threshold, lags, now).items():
                key = (topic, threshold)
                if value <= threshold.above:
                    self._crossed.discard(key)
                elif key not in self._crossed:
                    self._crossed.add(key)
                    found.append(Crossing(topic, value, threshold))
        return found

    def _values(self, of: Threshold, lags: Lags, now: float) -> dict[str, float]:
        """Return, for each topic, the value that is compared with a threshold's limit."""
        if of.figure == "quarantine":
            return {topic: window.share(now) for topic, window in self._windows[of].items()}
        values: dict[str, float] = {}
        if of.figure == "lag_records":
            for (topic, _), lag in lags.records.items():
                values[topic] = values.get(topic, 0) + lag
        else:
            for (topic, _), seconds in lags.seconds(now).items():
                values[topic] = max(values.get(topic, 0.0), seconds)
        return values
