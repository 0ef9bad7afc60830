"""`KafkaAdmin` describes topics with the class AdminClient of Kafka's Java client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.primitives.redaction import mask_url
from cloudevents_kafka.spark._java import java_of
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRanges
from cloudevents_kafka.spark.pipeline.topics._answers import Answers, DescribedTopic, EndRequest, Offsets
from cloudevents_kafka.spark.pipeline.topics._topics import (
    TopicChanged,
    TopicNotDescribed,
    TopicState,
    call_java,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX: Final = "kafka."
# The all-zero UUID, which Kafka uses for "no id".
_ZERO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


class KafkaAdmin:
    """The Java AdminClient of Spark's Kafka connector; the caller must call `close` at the end.

    The Java client accepts all settings of Spark's Kafka source; librdkafka does not accept all of them.
    """

    def __init__(self, spark: SparkSession, source_options: Mapping[str, str]) -> None:
        """Connect with the options of Spark's Kafka source; raise `PipelineFailed` for wrong options."""
        from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]  # py4j has no types

        jvm = java_of(spark)
        self._jvm: Any = jvm
        # Each part of a class name needs a separate call of Java, so the class is looked up only once.
        kafka = jvm.org.apache.kafka
        self._clients: Any = kafka.clients.admin
        admin_class = self._clients.Admin
        # In some vendors' builds of Spark, the client has another name. Then no topic can be described.
        self._admin: Any = (
            self._create(admin_class, source_options) if isinstance(admin_class, JavaClass) else None
        )
        # The arguments of the checks are also created only once.
        self._options: dict[float, tuple[Any, Any]] = {}
        if self._admin is not None:
            self._partition: Any = kafka.common.TopicPartition
            self._seconds: Any = jvm.java.util.concurrent.TimeUnit.SECONDS
            self._commas: Any = jvm.java.util.regex.Pattern.compile(",")
            self._answers = Answers(jvm)
            latest = self._clients.OffsetSpec.latest()
            self._end_request = EndRequest(jvm.java.util.HashMap, self._partition, latest)

    def _create(self, admin_class: Any, source_options: Mapping[str, str]) -> Any:
        """Return the Java client, which logs in at the brokers at once.

        If the login fails, the text of the error also contains the token endpoint, because Java's error does
        not contain it.
        """
        endpoint = source_options.get(f"{_PREFIX}sasl.oauthbearer.token.endpoint.url")
        try:
            return call_java(lambda: admin_class.create(self._config(source_options)))
        except PipelineFailed as error:
            if endpoint is None:
                raise
            raise PipelineFailed(f"token endpoint {mask_url(endpoint)}: {error}") from error

    def _config(self, source_options: Mapping[str, str]) -> Any:
        config = self._jvm.java.util.HashMap()
        for name, value in source_options.items():
            if name.startswith(_PREFIX):
                config.put(name.removeprefix(_PREFIX), value)
        return config

    def describe(
        self, topics: Iterable[str], landed: OffsetRanges, timeout: float
    ) -> dict[str, TopicState | None]:
        """Return the state of each topic: its id, and the end offsets of the partitions in ``landed``.

        If a topic does not exist, the state of this topic is None. Raises `PipelineFailed` if no broker
        answers within ``timeout`` seconds, or if a broker refuses the connection.
        """
        names = tuple(topics)
        if self._admin is None:
            return dict.fromkeys(names, TopicState(None, None, "Spark has no AdminClient under Kafka's name"))
        if not names:
            return {}
        # If one topic does not exist or must not be described, the request for all topics fails.
        return self._describe_all(names, landed, timeout) or {
            name: self._describe(name, landed.get(name, ()), timeout) for name in names
        }

    def _describe_all(
        self, names: tuple[str, ...], landed: OffsetRanges, timeout: float
    ) -> dict[str, TopicState | None] | None:
        """Return the states of topics, or None if the brokers cannot describe one of the topics."""
        with suppress(TopicNotDescribed):
            found = self._topics(names, timeout)
            places = {(name, int(number)) for name in found for number in landed.get(name, ())}
            ends = self._ends(found, places, timeout)
            if found and ends is not None:
                return {name: _state(found[name], ends.get(name, {})) for name in names}
        return None

    def _describe(self, name: str, partitions: Iterable[str], timeout: float) -> TopicState | None:
        try:
            found = self._topics((name,), timeout)
        except TopicNotDescribed as error:
            return TopicState(None, None, str(error))
        if not found:
            return None
        ends: Offsets | None = None
        with suppress(TopicNotDescribed):
            ends = self._ends(found, {(name, int(number)) for number in partitions}, timeout) or {}
        return _state(found[name], None if ends is None else ends.get(name, {}))

    def _topics(self, names: tuple[str, ...], timeout: float) -> dict[str, DescribedTopic]:
        """Return the descriptions of topics by name, or an empty dictionary if one topic does not exist."""
        listed = self._commas.splitAsStream(",".join(names)).toList()  # one call for all names
        described = self._admin.describeTopics(listed, self._timeouts(timeout)[0])
        found = self._wait(described.allTopicNames(), timeout)
        return {} if found is None else self._answers.topics(found)

    def _ends(
        self, topics: Mapping[str, DescribedTopic], places: set[tuple[str, int]], timeout: float
    ) -> Offsets | None:
        """Return the end offsets of partitions, or None if a partition was deleted meanwhile.

        The result contains only partitions that exist in their topic.
        """
        there = frozenset(place for place in places if place[1] < len(topics[place[0]].partitions))
        if not there:
            return {}
        request = self._end_request.of(there)
        found = self._wait(self._admin.listOffsets(request, self._timeouts(timeout)[1]).all(), timeout)
        return None if found is None else self._answers.offsets(found)

    def list_names(self, timeout: float) -> list[str]:
        """Return the names of all topics; raise `PipelineFailed` if no broker answers."""
        if self._admin is None:
            raise PipelineFailed("topic_pattern needs Kafka's AdminClient, which this Spark does not have")
        names = call_java(lambda: self._admin.listTopics().names().get(round(timeout) + 5, self._seconds))
        return str(self._jvm.String.join(",", names)).split(",")

    def offsets_at(self, topic: str, partitions: Iterable[str], position: str | int) -> dict[str, int]:
        """Return the offset that a position stands for, in each partition.

        ``position`` is ``earliest``, ``latest``, or a time in milliseconds since 1970. If ``position`` is a
        time, the offset is the offset of the first record whose timestamp is not before this time. If all
        records are older than this time, the offset is the latest offset. The latest offset is the end
        of the partition, or the first offset of a transaction that is still open.
        """
        if self._admin is None:
            raise PipelineFailed("a backfill needs Kafka's AdminClient, which this Spark does not have")
        specs = self._clients.OffsetSpec
        spec = specs.forTimestamp(position) if isinstance(position, int) else getattr(specs, position)()
        request = self._jvm.java.util.HashMap()
        for number in partitions:
            request.put(self._partition(topic, int(number)), spec)
        level = self._jvm.org.apache.kafka.common.IsolationLevel.READ_COMMITTED
        options = self._clients.ListOffsetsOptions(level).timeoutMs(60_000)
        try:
            found = self._wait(self._admin.listOffsets(request, options).all(), 60.0)
        except TopicNotDescribed as error:
            raise PipelineFailed(f"the offsets of {topic} cannot be read: {error}") from error
        if found is None:
            raise TopicChanged(f"topic {topic} has lost a partition, or was deleted")
        offsets = dict(self._answers.offsets(found).get(topic, {}))
        absent = [number for number, offset in offsets.items() if offset < 0]
        return {**offsets, **(self.offsets_at(topic, absent, "latest") if absent else {})}

    def _timeouts(self, timeout: float) -> tuple[Any, Any]:
        """Return Java options, with the timeout, of the methods ``describeTopics`` and ``listOffsets``."""
        if timeout not in self._options:
            milliseconds = round(timeout * 1000)
            self._options[timeout] = (
                self._clients.DescribeTopicsOptions().timeoutMs(milliseconds),
                self._clients.ListOffsetsOptions().timeoutMs(milliseconds),
            )
        return self._options[timeout]

    def _wait(self, future: Any, timeout: float) -> Any:
        """Return the result of a Java future, or None if the topic or partition does not exist."""
        # The client's own timeout is shorter, because the client's error has more details.
        return call_java(lambda: future.get(round(timeout) + 5, self._seconds))

    def close(self) -> None:
        """Close the connections of the client to the brokers."""
        if self._admin is not None:
            self._admin.close(self._jvm.java.time.Duration.ZERO)


def _state(topic: DescribedTopic, ends: Mapping[str, int] | None) -> TopicState:
    id_ = None if topic.topic_id == _ZERO_ID else topic.topic_id
    return TopicState(id_, ends, partitions=len(topic.partitions))
