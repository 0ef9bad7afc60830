"""`GroupOffsets` commits landed offsets to a consumer group, so that Kafka's tools show a pipeline's lag."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from cloudevents_kafka.spark.kafka_settings import NoCounterpart, librdkafka_settings
from cloudevents_kafka.spark.pipeline.notes import OffsetRanges, iter_partitions

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_TIMEOUT_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 60.0  # the pause after a refused commit


class GroupOffsets:
    """Commits offsets to a consumer group, which has no consumers and only shows the lag of a pipeline.

    If several commits to the group fail for the same reason, only the first failure causes a warning.
    """

    def __init__(
        self, group: str | None, source_options: Mapping[str, str], warn: Callable[[str], object]
    ) -> None:
        """Connect with the options of Spark's Kafka source; if the group is None, do nothing."""
        self._group, self._warn = group or "", warn
        self._admin = GroupAdmin(source_options) if group else None
        self._ends: dict[tuple[str, int], int] = {}
        self._paused_until = 0.0
        self._reasons: set[str] = set()

    def add(self, landed: OffsetRanges) -> None:
        """Remember the offsets of a batch that has landed."""
        if self._admin is not None:
            self._ends |= {(topic, int(number)): of.end for topic, number, of in iter_partitions(landed)}

    def commit(self) -> None:
        """Commit new offsets to the group, unless a commit failed within the last minute.

        A pause of a minute after a failure is necessary because a failed commit may take seconds.
        """
        if self._admin is None or not self._ends or time.monotonic() < self._paused_until:
            return
        reason = self._admin.commit_offsets(self._group, self._ends, _TIMEOUT_SECONDS)
        if reason is None:
            self._ends = {}
            return
        self._paused_until = time.monotonic() + _PAUSE_SECONDS
        if reason not in self._reasons:
            self._reasons.add(reason)
            self._warn(
                f"landed offsets were not committed to the group {self._group}: {reason}. The run continues, "
                "because the tables decide what has landed. "
                "The group must have no consumers, and this login needs the right READ on the group"
            )


class GroupAdmin:
    """The AdminClient of ``confluent_kafka``, or the reason why this client cannot be used."""

    def __init__(self, source_options: Mapping[str, str]) -> None:
        self._client: AdminClient | None = None
        self._reason = ""
        try:
            from confluent_kafka.admin import AdminClient

            self._client = AdminClient({**librdkafka_settings(source_options), "log_level": 0})
        except NoCounterpart as error:
            self._reason = f"{error} is a setting that only the Java client has"
        except ImportError:
            self._reason = "confluent_kafka is not installed"
        except Exception as error:  # noqa: BLE001  # KafkaException, or ValueError for a file
            self._reason = str(error)

    def commit_offsets(self, group: str, ends: Mapping[tuple[str, int], int], timeout: float) -> str | None:
        """Commit offsets by topic and partition to a group; return the reason if this fails."""
        if self._client is None:
            return self._reason
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        places = [TopicPartition(topic, number, end) for (topic, number), end in ends.items()]
        request = [ConsumerGroupTopicPartitions(group, places)]
        try:
            (future,) = self._client.alter_consumer_group_offsets(request, request_timeout=timeout).values()
            errors = [place.error for place in future.result(timeout + 1).topic_partitions if place.error]
        except (KafkaException, TimeoutError) as error:
            errors = [*error.args[:1]] or ["no broker answered in time"]
        return str(errors[0]) if errors else None
