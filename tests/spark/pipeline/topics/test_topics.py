"""The checks of topics without brokers: Java's errors, ids and end offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRange, OffsetRanges
from cloudevents_kafka.spark.pipeline.topics import KafkaAdmin, TopicChanged, TopicMonitor
from cloudevents_kafka.spark.pipeline.topics._topics import TopicNotDescribed, TopicState, call_java

ERRORS = "org.apache.kafka.common.errors."


def thrown(name: str, cause: Any = None) -> Any:
    kind = SimpleNamespace(getName=lambda: name)
    return SimpleNamespace(getClass=lambda: kind, getCause=lambda: cause, toString=lambda: f"{name}: why")


def fail(name: str) -> Any:
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = thrown("java.util.concurrent.ExecutionException", thrown(ERRORS + name))
    raise error


def test_missing_topic() -> None:
    """A missing topic is a result, not an error."""
    assert call_java(lambda: fail("UnknownTopicOrPartitionException")) is None
    assert call_java(lambda: 7) == 7


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TopicAuthorizationException", "right to describe it is missing"),
        ("ClusterAuthorizationException", "right to describe it is missing"),
        ("UnsupportedVersionException", "too old"),
    ],
)
def test_topics_that_are_not_described(name: str, words: str) -> None:
    """Without the right to describe a topic, or with old brokers, the error has the reason."""
    with pytest.raises(TopicNotDescribed, match=words):
        call_java(lambda: fail(name))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TimeoutException", "no broker answered"),
        ("SaslAuthenticationException", "the broker refused"),
        ("InvalidTopicException", "InvalidTopicException: why"),
        ("LoginException", "got no token: check that the token endpoint answers"),
    ],
)
def test_brokers_that_fail(name: str, words: str) -> None:
    """If no broker answers, or one refuses, the pipeline fails with advice."""
    with pytest.raises(PipelineFailed, match=words):
        call_java(lambda: fail(name))


def test_spark_without_the_client() -> None:
    """Without Kafka's AdminClient in Spark, ids and ends are unknown."""
    package = SimpleNamespace(clients=SimpleNamespace(admin=SimpleNamespace(Admin=object())))
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(kafka=package)))
    brokers = KafkaAdmin(SimpleNamespace(_jvm=jvm), {})  # type: ignore[arg-type]
    found = brokers.describe(["t"], {}, 1.0)
    assert found["t"] is not None
    assert (found["t"].id, found["t"].ends) == (None, None)
    brokers.close()


class FixedAdmin:
    """An admin client with fixed results."""

    def __init__(self, **topics: TopicState | None) -> None:
        self._topics = topics

    def describe(
        self, topics: Iterable[str], landed: OffsetRanges, timeout: float
    ) -> Mapping[str, TopicState | None]:
        return {topic: self._topics[topic] for topic in topics}


def check(
    before: Mapping[str, str],
    landed: OffsetRanges,
    planned: OffsetRanges | None = None,
    **now: TopicState | None,
) -> Any:
    warnings: list[str] = []
    topics = TopicMonitor(now, FixedAdmin(**now), "lake", warnings.append)
    for _ in range(2):
        ids = topics.check(before, landed, planned)
    return ids, warnings


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudevents_kafka.spark.pipeline.topics._topics._RECREATION_SECONDS", 0.01)


LANDED = {"t": {"0": OffsetRange(0, 10), "1": OffsetRange(5, 7)}}


def test_ids_of_an_unfinished_batch() -> None:
    """The topics of a batch have the ids of the batch, also if the pipeline does not read them any more."""
    states = {"t": TopicState("A", {}), "u": TopicState("B", {}), "v": None}
    topics = TopicMonitor((), FixedAdmin(**states), "lake", pytest.fail)
    topics.check_ids({"t": "A", "v": "C"}, ("t", "u"))
    with pytest.raises(TopicChanged, match=r"u was deleted and created again: its id is B, .* with id A"):
        topics.check_ids({"u": "A"}, ("t", "u"))
    with pytest.raises(TopicChanged, match="v does not exist any more: the topic with id C"):
        topics.check_ids({"v": "C"}, ("v",))
    assert [topics.exists(topic) for topic in states] == [True, True, False]


def test_same_topics() -> None:
    """Ids as they were, ids that were not known before, and ends behind what has landed are right."""
    now = {"t": TopicState("A", {"0": 10, "1": 8}), "u": TopicState("B", {})}
    assert check({"t": "A"}, LANDED, **now) == ({"t": "A", "u": "B"}, [])


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (TopicState("B", {"0": 99, "1": 99}), "t was deleted and created again: its id is B, .* with id A"),
        (None, "t does not exist any more: the topic with id A"),
        (TopicState("A", {"0": 9, "1": 99}), r"t\[0\] ends at offset 9, but all offsets before 10"),
        (TopicState("A", {"0": 99}), r"t\[1\] ends at offset 0, but all offsets before 7"),
        (TopicState(None, {"0": 9, "1": 99}), r"t\[0\] ends at offset 9"),
    ],
)
def test_changed_topics(now: TopicState | None, words: str) -> None:
    """Another id, a missing topic, and an end before the landed offsets are refused with advice."""
    with pytest.raises(
        TopicChanged, match=f"{words}.*(fresh folder, with a fresh checkpoint|--forget-topic t)"
    ):
        check({"t": "A"}, LANDED, t=now)


def test_ends_of_the_plan() -> None:
    """If the brokers report nothing, one warning says so, and the ends of Spark's plan are compared."""
    silent = TopicState(None, None, "the right is missing")
    ids, warnings = check({"t": "A"}, LANDED, t=silent)
    assert ids == {}
    assert len(warnings) == 1
    assert "topic t (the right is missing)" in warnings[0]
    check({"t": "A"}, LANDED, {"t": {"0": OffsetRange(10, 12)}}, t=silent)
    with pytest.raises(TopicChanged, match=r"t\[0\] ends at offset 4"):
        check({"t": "A"}, LANDED, {"t": {"0": OffsetRange(10, 4)}}, t=silent)
