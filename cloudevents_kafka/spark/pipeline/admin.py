"""Kafka's own AdminClient in Spark's Java, which comes with the connector: what the brokers say of topics.

It takes all settings of Spark's source, which librdkafka does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark.pipeline.errors import PipelineFailed, explained
from cloudevents_kafka.spark.pipeline.offsets import Spans
from cloudevents_kafka.spark.pipeline.topics import NotSaid, Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX: Final = "kafka."
# Kafka's form of "no id".
_ZERO: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_NO_TOPIC: Final = "UnknownTopicOrPartitionException"
_NO_RIGHT: Final = "AuthorizationException"
_TOO_OLD: Final = "UnsupportedVersionException"


class AdminBrokers:
    """The brokers as Java's AdminClient reaches them; `close` it."""

    def __init__(self, spark: SparkSession, source: Mapping[str, str]) -> None:
        """Take the options of Spark's Kafka source; raises `PipelineFailed` where they are wrong."""
        from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]  # py4j has none

        self._jvm: Any = spark._jvm  # noqa: SLF001 (the only way to Java from Python)
        made = self._kafka.clients.admin.Admin
        # Where a vendor's Spark has the client under another name, nothing can be asked.
        self._admin: Any = (
            answer(lambda: made.create(self._config(source))) if isinstance(made, JavaClass) else None
        )

    @property
    def _kafka(self) -> Any:
        return self._jvm.org.apache.kafka

    def _config(self, source: Mapping[str, str]) -> Any:
        config = self._jvm.java.util.HashMap()
        for name, value in source.items():
            if name.startswith(_PREFIX):
                config.put(name.removeprefix(_PREFIX), value)
        return config

    def ask(self, topics: Iterable[str], landed: Spans, seconds: float) -> dict[str, Topic | None]:
        """Return the ids of topics, and where those of their partitions end of which something landed.

        None for a topic that is not there. Raises `PipelineFailed` where no broker answers in
        time, or one refuses us.
        """
        if self._admin is None:
            return dict.fromkeys(topics, Topic(None, None, "Spark has no AdminClient under Kafka's name"))
        return {topic: self._topic(topic, landed.get(topic, {}), seconds) for topic in topics}

    def _topic(self, name: str, partitions: Iterable[str], seconds: float) -> Topic | None:
        try:
            described = self._describe(name, seconds)
        except NotSaid as error:
            return Topic(None, None, str(error))
        if described is None:
            return None
        topic_id = str(described.topicId().toString())
        there = {str(partition.partition()) for partition in described.partitions()}
        ends = self._ends(name, there.intersection(partitions), seconds)
        return Topic(None if topic_id == _ZERO else topic_id, ends)

    def _describe(self, name: str, seconds: float) -> Any:
        options = self._kafka.clients.admin.DescribeTopicsOptions().timeoutMs(round(seconds * 1000))
        described = self._admin.describeTopics([name], options).topicNameValues()
        return self._wait(described.get(name), seconds)

    def _ends(self, name: str, partitions: Iterable[str], seconds: float) -> dict[str, int] | None:
        latest = self._kafka.clients.admin.OffsetSpec.latest()
        wanted = {number: self._kafka.common.TopicPartition(name, int(number)) for number in partitions}
        asked = self._jvm.java.util.HashMap()
        for partition in wanted.values():
            asked.put(partition, latest)
        options = self._kafka.clients.admin.ListOffsetsOptions().timeoutMs(round(seconds * 1000))
        listed = self._admin.listOffsets(asked, options)
        with suppress(NotSaid):
            found = {
                number: self._wait(listed.partitionResult(partition), seconds)
                for number, partition in wanted.items()
            }
            return {number: end.offset() for number, end in found.items() if end is not None}
        return None

    def _wait(self, future: Any, seconds: float) -> Any:
        """Return the answer; None where there is no such topic or partition."""
        # The client's own bound comes first, and says more.
        unit = self._jvm.java.util.concurrent.TimeUnit.SECONDS
        return answer(lambda: future.get(round(seconds) + 5, unit))

    def close(self) -> None:
        """Let the connections go."""
        if self._admin is not None:
            self._admin.close(self._jvm.java.time.Duration.ZERO)


def answer(call: Callable[[], Any]) -> Any:
    """Return what a call of Java returns, None where there is no such topic or partition.

    Raises `NotSaid`, or `PipelineFailed` with what to do.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has none

    try:
        return call()
    except Py4JJavaError as error:
        thrown = error.java_exception
        thrown = thrown.getCause() or thrown
        kind = str(thrown.getClass().getName())
        if kind.endswith(_NO_TOPIC):
            return None
        if kind.endswith(_NO_RIGHT):
            raise NotSaid("the right to describe it is missing") from error
        if kind.endswith(_TOO_OLD):
            raise NotSaid("the brokers are too old") from error
        raise PipelineFailed(explained(f"Caused by: {thrown.toString()}")) from error
