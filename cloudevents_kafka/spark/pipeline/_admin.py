"""The ids and end offsets of topics, from the AdminClient of Kafka's Java client.

The connector brings this client. It accepts all settings of Spark's source; librdkafka does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark.pipeline._errors import PipelineFailed, explain_failure
from cloudevents_kafka.spark.pipeline._offsets import OffsetRanges
from cloudevents_kafka.spark.pipeline._topics import TopicNotDescribed, TopicState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREFIX: Final = "kafka."
# The all-zero UUID, which Kafka uses for "no id".
_ZERO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_NO_TOPIC: Final = "UnknownTopicOrPartitionException"
_NO_RIGHT: Final = "AuthorizationException"
_TOO_OLD: Final = "UnsupportedVersionException"


class KafkaAdmin:
    """A Java AdminClient; call `close` at the end."""

    def __init__(self, spark: SparkSession, source_options: Mapping[str, str]) -> None:
        """Connect with the options of Spark's Kafka source; raise `PipelineFailed` if they are wrong."""
        from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]  # py4j has no types

        self._jvm: Any = spark._jvm  # noqa: SLF001 (the only way to Java from Python)
        admin_class = self._kafka.clients.admin.Admin
        # The client has another name in some vendors' builds of Spark: no topic can be described there.
        self._admin: Any = (
            call_java(lambda: admin_class.create(self._config(source_options)))
            if isinstance(admin_class, JavaClass)
            else None
        )

    @property
    def _kafka(self) -> Any:
        return self._jvm.org.apache.kafka

    def _config(self, source_options: Mapping[str, str]) -> Any:
        config = self._jvm.java.util.HashMap()
        for name, value in source_options.items():
            if name.startswith(_PREFIX):
                config.put(name.removeprefix(_PREFIX), value)
        return config

    def describe(
        self, topics: Iterable[str], landed: OffsetRanges, timeout: float
    ) -> dict[str, TopicState | None]:
        """Return the topics' ids, and the end offsets of those partitions that have landed offsets.

        The value is None for a topic that does not exist. Raises `PipelineFailed` if no broker
        answers within ``timeout`` seconds, or if a broker refuses the connection.
        """
        if self._admin is None:
            return dict.fromkeys(
                topics, TopicState(None, None, "Spark has no AdminClient under Kafka's name")
            )
        return {topic: self._describe(topic, landed.get(topic, {}), timeout) for topic in topics}

    def _describe(self, name: str, partitions: Iterable[str], timeout: float) -> TopicState | None:
        try:
            description = self._description(name, timeout)
        except TopicNotDescribed as error:
            return TopicState(None, None, str(error))
        if description is None:
            return None
        topic_id = str(description.topicId().toString())
        existing = {str(partition.partition()) for partition in description.partitions()}
        ends = self._end_offsets(name, existing.intersection(partitions), timeout)
        return TopicState(None if topic_id == _ZERO_ID else topic_id, ends)

    def _description(self, name: str, timeout: float) -> Any:
        options = self._kafka.clients.admin.DescribeTopicsOptions().timeoutMs(round(timeout * 1000))
        futures = self._admin.describeTopics([name], options).topicNameValues()
        return self._wait(futures.get(name), timeout)

    def _end_offsets(self, name: str, partitions: Iterable[str], timeout: float) -> dict[str, int] | None:
        latest = self._kafka.clients.admin.OffsetSpec.latest()
        wanted = {number: self._kafka.common.TopicPartition(name, int(number)) for number in partitions}
        request = self._jvm.java.util.HashMap()
        for partition in wanted.values():
            request.put(partition, latest)
        options = self._kafka.clients.admin.ListOffsetsOptions().timeoutMs(round(timeout * 1000))
        result = self._admin.listOffsets(request, options)
        with suppress(TopicNotDescribed):
            found = {
                number: self._wait(result.partitionResult(partition), timeout)
                for number, partition in wanted.items()
            }
            return {number: end.offset() for number, end in found.items() if end is not None}
        return None

    def _wait(self, future: Any, timeout: float) -> Any:
        """Return the result of a Java future, or None if the topic or partition does not exist."""
        # The client's own timeout comes first, and its error has more details.
        unit = self._jvm.java.util.concurrent.TimeUnit.SECONDS
        return call_java(lambda: future.get(round(timeout) + 5, unit))

    def close(self) -> None:
        """Close the connections."""
        if self._admin is not None:
            self._admin.close(self._jvm.java.time.Duration.ZERO)


def call_java(call: Callable[[], Any]) -> Any:
    """Return the result of a Java call, or None if the topic or partition does not exist.

    Raises `TopicNotDescribed`, or `PipelineFailed` with advice.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

    try:
        return call()
    except Py4JJavaError as error:
        exception = error.java_exception
        exception = exception.getCause() or exception
        name = str(exception.getClass().getName())
        if name.endswith(_NO_TOPIC):
            return None
        if name.endswith(_NO_RIGHT):
            raise TopicNotDescribed("the right to describe it is missing") from error
        if name.endswith(_TOO_OLD):
            raise TopicNotDescribed("the brokers are too old") from error
        raise PipelineFailed(explain_failure(f"Caused by: {exception.toString()}")) from error
