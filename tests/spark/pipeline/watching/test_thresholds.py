"""The law of thresholds holds in random histories of batches, lags, pauses and restarts."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import BatchCounts, BatchProgress, PartitionCounts, PipelineOptions
from cloudevents_kafka.spark.pipeline.watching import Lags, Threshold, Thresholds
from tests.support.cases import each

TOPICS = ("a", "b")


def batch(read: dict[str, int], bad: dict[str, int], lags: dict[str, int], newest: float) -> BatchProgress:
    """Return a batch; the lags are those of the partitions 0 and 1 of each topic."""
    offsets = {
        topic: {"0": PartitionCounts(0, number - 1, number, round(newest * 1000))}
        for topic, number in read.items()
    }
    counts = BatchCounts(offsets=offsets, quarantined_by_topic=bad)
    return BatchProgress(number=0, counts=counts, behind=sum(lags.values()), lags=lags)


class Model:
    """All batches of a run, and what was above at the last look."""

    def __init__(self, thresholds: list[Threshold]) -> None:
        self.thresholds = thresholds
        self.batches: list[tuple[float, str, int, int]] = []
        self.lags: dict[str, int] = {}
        self.newest: dict[str, float] = {}
        self.above: set[tuple[str, Threshold]] = set()

    def value(self, of: Threshold, topic: str, now: float) -> float:
        lags = {name: lag for name, lag in self.lags.items() if name.startswith(topic)}
        if of.figure == "lag_records":
            return sum(lags.values())
        if of.figure == "lag_seconds":
            ages = [
                now - self.newest[topic] if lag else 0.0
                for name, lag in lags.items()
                if name == f"{topic}[0]" and (topic in self.newest or not lag)
            ]
            return max(ages, default=0.0)
        own = [found for found in self.batches if found[1] == topic]
        if of.seconds:
            window = [found for found in own if found[0] > now - of.seconds]
        else:
            window = []
            while own and sum(found[2] for found in window) < (of.records or 0):
                window.append(own.pop())
            if sum(found[2] for found in window) < (of.records or 0):
                return 0.0
        read = sum(found[2] for found in window)
        return sum(found[3] for found in window) / read if read else 0.0

    def look(self, now: float) -> list[tuple[str, Threshold]]:
        found = []
        for threshold in self.thresholds:
            for topic in TOPICS:
                key = (topic, threshold)
                if self.value(threshold, topic, now) <= threshold.above:
                    self.above.discard(key)
                elif key not in self.above:
                    self.above.add(key)
                    found.append(key)
        return found


def random_threshold(rng: random.Random) -> Threshold:
    action: Any = rng.choice(["warn", "end", "stop"])
    kind = rng.randrange(4)
    if kind == 0:
        return Threshold(
            figure="quarantine", above=rng.random() / 2, seconds=rng.randint(1, 100), action=action
        )
    if kind == 1:
        return Threshold(
            figure="quarantine", above=rng.random() / 2, records=rng.randint(1, 400), action=action
        )
    if kind == 2:
        return Threshold(figure="lag_records", above=rng.randint(0, 1000), action=action)
    return Threshold(figure="lag_seconds", above=rng.randint(0, 60), action=action)


@each("seed", range(60))
def test_law(seed: int) -> None:
    """The thresholds fire when those of the model do, which computes each value from all batches."""
    rng = random.Random(seed)
    thresholds = [random_threshold(rng) for _ in range(rng.randint(1, 5))]
    model, lags, watched = Model(thresholds), Lags(), Thresholds(thresholds)
    now, fired = 1_000_000.0, 0
    for _ in range(200):
        now += rng.choice([1, 1, 2, 30])  # more than a hundredth of each window
        step = rng.random()
        if step < 0.02:  # a restart: nothing is known of the run before
            model, lags, watched = Model(thresholds), Lags(), Thresholds(thresholds)
        elif step < 0.8:
            read = {topic: rng.randint(1, 1) * rng.randint(4, 200) for topic in TOPICS if rng.random() < 0.7}
            share = rng.choice([0.0, 0.1, 0.5])
            bad = {topic: round(number * share) for topic, number in read.items()}
            behind = {f"{topic}[{n}]": rng.choice([0, 0, 600]) for topic in TOPICS for n in (0, 1)}
            newest = now - rng.choice([0, 50])
            progress = batch(read, bad, behind, newest)
            lags.add(progress)
            watched.add(progress.counts, now)
            model.lags = behind
            for topic, number in read.items():
                model.batches.append((now, topic, number, bad[topic]))
                model.newest[topic] = max(newest, model.newest.get(topic, 0))
        crossings = watched.look(lags, now)
        found = Counter((crossing.topic, crossing.threshold) for crossing in crossings)
        assert found == Counter(model.look(now))
        fired += len(crossings)
    assert fired


@pytest.mark.parametrize("window", ["1h", "100000"])
def test_windows_are_bounded(window: str) -> None:
    """A window has few parts for any number of batches, and forgets what is older by a hundredth of it."""
    watched, lags = Thresholds([Threshold.parse(f"quarantine>5%/{window}")]), Lags()
    for number in range(20_000):
        progress = batch({"a": 10}, {"a": 1 if number < 1000 else 0}, {}, 0)
        watched.add(progress.counts, number * 0.2)
        watched.look(lags, number * 0.2)
        (windows,) = watched._windows.values()
        assert len(windows["a"]._parts) <= 102
    share = windows["a"].share(20_000 * 0.2)
    assert 0 <= share < (0.002 if window == "1h" else 0.0001)


def test_once_for_each_crossing() -> None:
    """What stays above fires once; what was at the limit meanwhile fires again, and so does a new run."""
    threshold = Threshold(figure="lag_records", above=10)
    watched, lags = Thresholds([threshold]), Lags()
    fired = []
    for lag in (10, 11, 12, 10, 11):
        lags.add(batch({}, {}, {"a[0]": lag}, 0))
        fired.append(len(watched.look(lags, 0)))
    assert fired == [0, 1, 0, 0, 1]
    assert len(Thresholds([threshold]).look(lags, 0)) == 1


@each(
    ("text", "fields"),
    [
        ("quarantine>5%/10m", {"figure": "quarantine", "above": 0.05, "seconds": 600}),
        (
            "quarantine > 0.5%/1000:stop",
            {"figure": "quarantine", "above": 0.005, "records": 1000, "action": "stop"},
        ),
        ("quarantine>0%/1h:end", {"figure": "quarantine", "above": 0, "seconds": 3600, "action": "end"}),
        ("lag>100000", {"figure": "lag_records", "above": 100_000}),
        ("lag>90s:end", {"figure": "lag_seconds", "above": 90, "action": "end"}),
        ("lag>1.5h:warn", {"figure": "lag_seconds", "above": 5400}),
    ],
)
def test_texts(text: str, fields: dict[str, Any]) -> None:
    """A text has the fields of the struct."""
    assert Threshold.parse(text) == Threshold(**fields)


@each(
    "text",
    [
        *("", "lag", "lag>", "lag>x", "lag>5%", "lag<5", "lag>5:never", "lag>5/10m", "lag>-1"),
        *("quarantine>5%", "quarantine>5/10m", "quarantine>5%/0", "quarantine>100%/10", "quarantine>5m/10m"),
        *("rate>5", "quarantine>5%/10m:", "quarantine>5%/10x", "LAG>5"),
    ],
)
def test_wrong_texts(text: str) -> None:
    """Any other text is an error that has the form."""
    with pytest.raises(ValueError, match="must "):
        Threshold.parse(text)


@each(
    "fields",
    [
        {"figure": "rate", "above": 1},
        {"figure": "lag_records", "above": 1, "action": "beep"},
        {"figure": "lag_records", "above": -1},
        {"figure": "lag_records", "above": 1, "seconds": 5},
        {"figure": "quarantine", "above": 0.1, "seconds": 5, "records": 5},
        {"figure": "quarantine", "above": 5, "seconds": 5},
        {"figure": "lag_records", "above": float("nan")},
    ],
)
def test_wrong_fields(fields: dict[str, Any]) -> None:
    """A struct with other values is an error."""
    with pytest.raises(ValueError, match="must "):
        Threshold(**fields)


def test_crossings_in_words() -> None:
    """A crossing has topic, value and limit."""
    thresholds = [
        Threshold.parse(text) for text in ("quarantine>5%/10m", "quarantine>5%/100", "lag>10", "lag>10s")
    ]
    watched, lags = Thresholds(thresholds), Lags()
    progress = batch({"a": 1000}, {"a": 125}, {"a[0]": 5000, "a[1]": 7}, 1000)
    lags.add(progress)
    watched.add(progress.counts, 1000)
    assert [str(crossing) for crossing in watched.look(lags, 1100)] == [
        "topic a has 12.5% of the last 600 s in the quarantine, above 5%",
        "topic a has 12.5% of the last 100 records in the quarantine, above 5%",
        "topic a is 5,007 offsets behind, above 10",
        "topic a is 100 s behind, above 10",
    ]


def test_options_without_topics() -> None:
    """Options without a topic read all others, by names and by a pattern."""
    options = PipelineOptions(bootstrap_servers="b", topics=("a,b", "a.b"), out="o")
    left = options.without(["a"])
    assert left is not None
    assert left.topic_names == ("b", "a.b")
    assert left.without(["b", "a.b"]) is None
    by_pattern = PipelineOptions(bootstrap_servers="b", topic_pattern="a.*|b", out="o").without(["a.b", "b"])
    assert by_pattern is not None
    assert [name for name in ("a", "a.b", "aXb", "a.bc", "b", "bb") if by_pattern.reads(name)] == [
        *("a", "aXb", "a.bc"),
    ]
