"""`KafkaAdmin`: the AdminClient of Kafka's Java client, which describes topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.primitives.redaction import mask_url
from cloudevents_kafka.spark._java import java_of
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRanges
from cloudevents_kafka.spark.pipeline.topics._listing import FEWEST, EndRequest, ends_of, listed_ids
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
    """The Java AdminClient of the connector; call `close` at the end.

    It accepts all settings of Spark's source; librdkafka does not.
    """

    def __init__(self, spark: SparkSession, source_options: Mapping[str, str]) -> None:
        """Connect with the options of Spark's Kafka source; raise `PipelineFailed` if they are wrong."""
        from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]  # py4j has no types

        jvm = java_of(spark)
        self._jvm: Any = jvm
        # Each part of a class's name is a call of Java, so the classes are looked up once.
        kafka = jvm.org.apache.kafka
        self._clients: Any = kafka.clients.admin
        admin_class = self._clients.Admin
        # The client has another name in some vendors' builds of Spark: no topic can be described there.
        self._admin: Any = (
            self._create(admin_class, source_options) if isinstance(admin_class, JavaClass) else None
        )
        # The arguments of each check are made once, too.
        self._requests: dict[tuple[str, tuple[str, ...]], tuple[Any, dict[str, Any]]] = {}
        self._names: dict[str, Any] = {}
        self._options: dict[float, tuple[Any, Any]] = {}
        self._sizes: dict[str, int] = {}  # numbers of partitions by the ids of topics
        if self._admin is not None:
            self._partition: Any = kafka.common.TopicPartition
            self._latest: Any = self._clients.OffsetSpec.latest()
            self._seconds: Any = jvm.java.util.concurrent.TimeUnit.SECONDS
            self._all_ends = EndRequest(jvm.java.util.HashMap, self._partition, self._latest)

    def _create(self, admin_class: Any, source_options: Mapping[str, str]) -> Any:
        """Return Java's client, which logs in first; an error names the token endpoint, unlike Java's."""
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
        """Return the topics' ids, and the end offsets of those partitions that have landed offsets.

        The value is None for a topic that does not exist. Raises `PipelineFailed` if no broker
        answers within ``timeout`` seconds, or if a broker refuses the connection.
        """
        if self._admin is None:
            return dict.fromkeys(
                topics, TopicState(None, None, "Spark has no AdminClient under Kafka's name")
            )
        names = list(topics)
        listed = self._describe_listed(names, landed, timeout) if len(names) >= FEWEST else {}
        return {
            name: listed[name] if name in listed else self._describe(name, landed.get(name, {}), timeout)
            for name in names
        }

    def _describe_listed(
        self, names: Collection[str], landed: OffsetRanges, timeout: float
    ) -> dict[str, TopicState | None]:
        """Return the states of topics that were described before and that are listed with the same id.

        Such a topic has as many partitions as before, or more.
        """
        listings = call_java(
            lambda: self._admin.listTopics().listings().get(round(timeout) + 5, self._seconds)
        )
        ids = listed_ids(listings)
        known = {name: ids[name] for name in names if self._has_all(ids.get(name), landed.get(name, ()))}
        places = frozenset((name, number) for name in known for number in landed.get(name, ()))
        ends: Mapping[str, Mapping[str, int]] | None = {}
        if places:
            result = self._admin.listOffsets(self._all_ends.of(places), self._timeouts(timeout)[1])
            try:
                found = self._wait(result.all(), timeout)
            except TopicNotDescribed:
                found = None
            ends = None if found is None else ends_of(found, places)
        if ends is None:
            return {}
        return {
            name: TopicState(id_, ends.get(name, {}), partitions=self._sizes[id_])
            for name, id_ in known.items()
        }

    def _has_all(self, topic_id: str | None, partitions: Iterable[str]) -> bool:
        """Return whether a topic was described before, and is known to have these partitions."""
        size = self._sizes.get(topic_id or _ZERO_ID)
        return size is not None and all(int(number) < size for number in partitions)

    def list_names(self, timeout: float) -> list[str]:
        """Return the names of all topics; raise `PipelineFailed` if no broker answers."""
        if self._admin is None:
            raise PipelineFailed("topic_pattern needs Kafka's AdminClient, which this Spark does not have")
        names = call_java(lambda: self._admin.listTopics().names().get(round(timeout) + 5, self._seconds))
        return str(self._jvm.String.join(",", names)).split(",")

    def _describe(self, name: str, partitions: Iterable[str], timeout: float) -> TopicState | None:
        try:
            description = self._description(name, timeout)
        except TopicNotDescribed as error:
            return TopicState(None, None, str(error))
        if description is None:
            return None
        topic_id = str(description.topicId().toString())
        size = description.partitions().size()  # partitions are numbered from 0
        if topic_id != _ZERO_ID:
            self._sizes[topic_id] = size
        ends = self._end_offsets(name, [number for number in partitions if int(number) < size], timeout)
        return TopicState(None if topic_id == _ZERO_ID else topic_id, ends, partitions=size)

    def _description(self, name: str, timeout: float) -> Any:
        if name not in self._names:
            self._names[name] = self._jvm.java.util.List.of(name)
        futures = self._admin.describeTopics(self._names[name], self._timeouts(timeout)[0])
        return self._wait(futures.topicNameValues().get(name), timeout)

    def _end_offsets(self, name: str, partitions: list[str], timeout: float) -> dict[str, int] | None:
        request, wanted = self._request(name, tuple(sorted(partitions)))
        result = self._admin.listOffsets(request, self._timeouts(timeout)[1])
        with suppress(TopicNotDescribed):
            ends = self._wait(result.all(), timeout)
            if ends is not None:
                return {number: ends.get(partition).offset() for number, partition in wanted.items()}
            return {}
        return None

    def offsets_at(self, topic: str, partitions: Iterable[str], position: str | int) -> dict[str, int]:
        """Return the ``earliest`` or ``latest`` offsets, or the first from a time on, in milliseconds.

        If all records are older that is the end, which is that of records that are committed.
        """
        if self._admin is None:
            raise PipelineFailed("a backfill needs Kafka's AdminClient, which this Spark does not have")
        specs = self._clients.OffsetSpec
        spec = specs.forTimestamp(position) if isinstance(position, int) else getattr(specs, position)()
        wanted = {number: self._partition(topic, int(number)) for number in partitions}
        request = self._jvm.java.util.HashMap()
        for partition in wanted.values():
            request.put(partition, spec)
        level = self._jvm.org.apache.kafka.common.IsolationLevel.READ_COMMITTED
        options = self._clients.ListOffsetsOptions(level).timeoutMs(60_000)
        try:
            found = self._wait(self._admin.listOffsets(request, options).all(), 60.0)
        except TopicNotDescribed as error:
            raise PipelineFailed(f"the offsets of {topic} cannot be read: {error}") from error
        if found is None:
            raise TopicChanged(f"topic {topic} has lost a partition, or was deleted")
        offsets = {number: int(found.get(partition).offset()) for number, partition in wanted.items()}
        absent = [number for number, offset in offsets.items() if offset < 0]
        return {**offsets, **(self.offsets_at(topic, absent, "latest") if absent else {})}

    def _request(self, name: str, partitions: tuple[str, ...]) -> tuple[Any, dict[str, Any]]:
        """Return the request of end offsets, and its partitions."""
        if (name, partitions) not in self._requests:
            request = self._jvm.java.util.HashMap()
            wanted = {number: self._partition(name, int(number)) for number in partitions}
            for partition in wanted.values():
                request.put(partition, self._latest)
            self._requests[name, partitions] = request, wanted
        return self._requests[name, partitions]

    def _timeouts(self, timeout: float) -> tuple[Any, Any]:
        """Return the options of both calls, with the client's own timeout."""
        if timeout not in self._options:
            milliseconds = round(timeout * 1000)
            self._options[timeout] = (
                self._clients.DescribeTopicsOptions().timeoutMs(milliseconds),
                self._clients.ListOffsetsOptions().timeoutMs(milliseconds),
            )
        return self._options[timeout]

    def _wait(self, future: Any, timeout: float) -> Any:
        """Return the result of a Java future, or None if the topic or partition does not exist."""
        # The client's own timeout comes first, and its error has more details.
        return call_java(lambda: future.get(round(timeout) + 5, self._seconds))

    def close(self) -> None:
        """Close the connections."""
        if self._admin is not None:
            self._admin.close(self._jvm.java.time.Duration.ZERO)
