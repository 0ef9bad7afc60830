"""`LibrdkafkaAdmin`: describes topics where Java's AdminClient is not at hand, as on Spark Connect."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.notes import OffsetRanges
from cloudevents_kafka.spark.pipeline.session import OAUTH_HANDLER, OAUTH_OPTIONS
from cloudevents_kafka.spark.pipeline.topics._topics import TopicState

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_PREFIX: Final = "kafka."
_CONNECTION: Final = ("sasl.", "ssl.", "security.")  # settings that decide whether a broker answers
_SAME: Final = frozenset(
    {
        *("security.protocol", "ssl.endpoint.identification.algorithm", "ssl.key.password"),
        *("sasl.mechanism", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.sub.claim.name"),
    }
)
_PEM: Final = {"ssl.keystore.certificate.chain": "ssl.certificate.pem", "ssl.keystore.key": "ssl.key.pem"}
_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
_JAAS: Final = re.compile(
    r"org\.apache\.kafka\.common\.security\."
    r"(?:plain\.Plain|scram\.Scram|oauthbearer\.OAuthBearer)LoginModule "
)
_LOGIN: Final = re.compile(r'([\w.]+)="((?:[^"\\]|\\.)*)"')
_LOGIN_OPTIONS: Final = {
    "username": "sasl.username",
    "password": "sasl.password",
    **{java: name for name, java in OAUTH_OPTIONS.items()},
}
_EXTENSION: Final = "extension_"
# How long the first connection may take; a client of Spark Connect often has no way to the brokers.
_FIRST_SECONDS: Final = 10.0


class NoCounterpart(Exception):
    """A setting of Spark's source that librdkafka does not have."""


class LibrdkafkaAdmin:
    """The AdminClient of ``confluent_kafka``; describes topics without an id where it has no connection."""

    def __init__(self, source_options: Mapping[str, str]) -> None:
        self._client: AdminClient | None = None
        self._has_answered = False
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

    def describe(
        self, topics: Iterable[str], landed: OffsetRanges, timeout: float
    ) -> dict[str, TopicState | None]:
        """Return the topics' ids, and the end offsets of those partitions that have landed offsets.

        The value is None for a topic that does not exist. Raises `PipelineFailed` if the brokers have
        answered before and do not answer within ``timeout`` seconds; if they have never answered, the
        states have the reason.
        """
        return {topic: self._describe(topic, landed.get(topic, {}), timeout) for topic in topics}

    def list_names(self, timeout: float) -> list[str]:
        """Return the names of all topics; raise `PipelineFailed` if no broker answers."""
        from confluent_kafka import KafkaException

        try:
            return list(self._client.list_topics(timeout=timeout).topics) if self._client is not None else []
        except KafkaException as error:
            raise PipelineFailed(f"no broker answered: {error.args[0]}") from error

    def _describe(self, topic: str, partitions: Iterable[str], timeout: float) -> TopicState | None:
        if self._client is None:
            return TopicState(None, None, self._reason)
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        seconds = timeout if self._has_answered else min(timeout, _FIRST_SECONDS)
        try:
            found = self._client.describe_topics(TopicCollection([topic]), request_timeout=seconds)
            description = found[topic].result(seconds + 5)
        except (KafkaException, TimeoutError) as error:
            problem = error.args[0] if error.args else None
            code = problem.code() if isinstance(problem, KafkaError) else None
            if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                self._has_answered = True
                return None
            if code in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}:
                return TopicState(None, None, "the right to describe it is missing")
            return self._unanswered(problem or error)
        self._has_answered = True
        existing = {str(partition.id) for partition in description.partitions}
        ends = self._ends(topic, existing.intersection(partitions), seconds)
        return TopicState(_id_text(description.topic_id), ends, partitions=len(existing))

    def _unanswered(self, problem: Any) -> TopicState:
        if self._has_answered:
            raise PipelineFailed(f"no broker answered: {problem}")
        self._client = None
        self._reason = f"this process does not reach them: {problem}"
        return TopicState(None, None, self._reason)

    def _ends(self, topic: str, partitions: Iterable[str], timeout: float) -> dict[str, int] | None:
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # it is documented

        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, int(partition)): latest for partition in partitions}
        if not wanted or self._client is None:
            return {}
        try:
            found = self._client.list_offsets(wanted, request_timeout=timeout)
            return {str(key.partition): future.result(timeout + 5).offset for key, future in found.items()}
        except (KafkaException, TimeoutError):
            return None

    def commit_offsets(self, group: str, ends: Mapping[tuple[str, int], int], timeout: float) -> str | None:
        """Commit offsets by topic and partition to a group; return the reason if they are refused."""
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

    def close(self) -> None:
        """Drop the connections."""
        self._client = None


def _id_text(topic_id: Any) -> str | None:
    """Return a topic's id as Java writes it, or None if there is none."""
    parts = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
    if parts == (0, 0):
        return None
    content = b"".join(part.to_bytes(8, "big", signed=part < 0) for part in parts)
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def librdkafka_settings(source_options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of librdkafka that connect as the options of Spark's Kafka source do.

    Raises `NoCounterpart` for one that decides on the connection and that librdkafka does not have.
    """
    java = {
        name.removeprefix(_PREFIX): value
        for name, value in source_options.items()
        if name.startswith(_PREFIX)
    }
    settings = {"bootstrap.servers": java["bootstrap.servers"]}
    for name, value in java.items():
        if name == "sasl.jaas.config" and _JAAS.match(value):
            settings |= _login(value)
        elif name == "sasl.login.callback.handler.class" and value == OAUTH_HANDLER:
            settings["sasl.oauthbearer.method"] = "oidc"
        elif name == "ssl.truststore.location" and java.get("ssl.truststore.type") == "PEM":
            settings["ssl.ca.location"] = value
        elif name in _SAME:
            settings[name] = value or "none"
        elif name in _PEM:
            settings[_PEM[name]] = value
        elif name.startswith(_CONNECTION) and not (name in _TYPES and value == "PEM"):
            raise NoCounterpart(f"{_PREFIX}{name}")
    return settings


def _login(jaas: str) -> dict[str, str]:
    """Return the settings of librdkafka for the options of a login module."""
    login = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _LOGIN.findall(jaas)}
    pairs = [
        f"{name.removeprefix(_EXTENSION)}={value}"
        for name, value in login.items()
        if name.startswith(_EXTENSION)
    ]
    extensions = {"sasl.oauthbearer.extensions": ",".join(pairs)} if pairs else {}
    return {_LOGIN_OPTIONS[name]: login[name] for name in login if name in _LOGIN_OPTIONS} | extensions
