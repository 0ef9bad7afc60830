"""The topics, the offsets and the consumer groups of a cluster, as the admin client returns them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from cloudevents_kafka.cli.kafka.lag import Lag
from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.text import near

if TYPE_CHECKING:
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # it is documented

_Key = TypeVar("_Key")
Partition = tuple[str, int]
"""A partition: the name of a topic and the number of the partition."""


class Watermarks(NamedTuple):
    """The first offset of a partition, and the offset after the partition's last record."""

    low: int
    high: int


class Group(NamedTuple):
    """A consumer group: its state, its members, and its lag in each partition with a committed offset."""

    name: str
    state: str
    members: Sequence[Any]
    lags: Mapping[Partition, Lag]

    @property
    def behind(self) -> int:
        """The number of offsets between the group's committed offset and the end."""
        return sum(lag.behind for lag in self.lags.values())


class ClusterView:
    """Lists the topics and groups of a cluster. The methods raise `BrokerFailure` if no broker answers.

    ``session`` is the session with the cluster; other clients may use the same session.
    """

    def __init__(self, session: BrokerSession) -> None:
        from confluent_kafka.admin import AdminClient

        self.session = session
        self._client = session.create(AdminClient)

    def topics(self) -> dict[str, list[int]]:
        """Return the numbers of each topic's partitions, as a dictionary in the order of the topic names."""
        with self.session.client_errors():
            for _ in self.session.poll_until_timeout(self._client):
                if found := self.session.metadata(self._client):
                    return {name: sorted(topic.partitions) for name, topic in sorted(found.topics.items())}
        raise self.session.no_answer()

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic. Raises `BadUsage` if the topic does not exist."""
        topics = self.topics()  # a request about one topic could create the topic
        if topic not in topics:
            raise BadUsage(f"broker {self.session.address} has no topic {topic!r}{near(topic, topics)}")
        return topics[topic]

    def watermarks(self, partitions: Sequence[Partition]) -> dict[Partition, Watermarks]:
        """Return the first offset and the end offset of each partition."""
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # it is documented

        low, high = (self._offsets(partitions, spec()) for spec in (OffsetSpec.earliest, OffsetSpec.latest))  # type: ignore[no-untyped-call]
        return {one: Watermarks(low[one], high[one]) for one in partitions}

    def _offsets(self, partitions: Sequence[Partition], spec: OffsetSpec) -> dict[Partition, int]:
        from confluent_kafka import TopicPartition

        asked = {TopicPartition(*one): spec for one in partitions}
        found = self._ask(self._client.list_offsets, asked) if asked else {}
        return {(one.topic, one.partition): answer.offset for one, answer in found.items()}

    def group_names(self) -> list[str]:
        """Return the sorted names of the consumer groups."""
        found = self._ask(lambda **timeout: {"": self._client.list_consumer_groups(**timeout)})[""]
        for error in found.errors:
            raise self.session.failure("does not list its groups", error.args[0])
        return sorted(group.group_id for group in found.valid)

    def groups(self, names: Sequence[str]) -> list[Group]:
        """Return the consumer groups with these names; a group that does not exist has the state ``DEAD``."""
        described = self._ask(self._client.describe_consumer_groups, list(names)) if names else {}
        topics = self.topics()  # groups keep the offsets of topics that were deleted
        committed = {
            name: {one: at for one, at in self.committed(name).items() if one[1] in topics.get(one[0], ())}
            for name in names
        }
        every = sorted({one for offsets in committed.values() for one in offsets})
        marks = self.watermarks(every)
        groups = []
        for name in names:
            lags = {
                one: Lag(f"{one[0]}[{one[1]}]", max(marks[one].low, offset), marks[one].high)
                for one, offset in sorted(committed[name].items())
            }
            group = described[name]
            groups.append(Group(name, group.state.name, group.members, lags))
        return groups

    def committed(self, group: str) -> dict[Partition, int]:
        """Return the offsets that a consumer group has committed."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        asked = [ConsumerGroupTopicPartitions(group)]
        found = self._checked(self._ask(self._client.list_consumer_group_offsets, asked)[group])
        return {(one.topic, one.partition): one.offset for one in found if one.offset >= 0}

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets for a group that has no members."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        wanted = [TopicPartition(*one, offset) for one, offset in offsets.items()]
        asked = [ConsumerGroupTopicPartitions(group, wanted)]
        self._checked(self._ask(self._client.alter_consumer_group_offsets, asked)[group])

    def _checked(self, answer: Any) -> list[Any]:
        partitions: list[Any] = answer.topic_partitions
        for one in partitions:
            if one.error is not None:
                raise self.session.failure(f"failed for {one.topic}[{one.partition}]", one.error)
        return partitions

    def _ask(self, call: Callable[..., Mapping[_Key, Future[Any]]], *arguments: object) -> dict[_Key, Any]:
        """Wait until a broker can be reached; then call a method of the client, and return its results."""
        self.topics()
        with self.session.client_errors():
            futures = call(*arguments, request_timeout=self.session.timeout)
            return {key: future.result() for key, future in futures.items()}
