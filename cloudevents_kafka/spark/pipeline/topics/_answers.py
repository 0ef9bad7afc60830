"""`Answers` reads the metadata of many topics from Kafka's AdminClient, in one Java call for all topics.

If each topic needed a separate Java call, each check of a thousand topics would take seconds. So the Java
library Jackson, which is one of Spark's jars, converts the fields of the client's answer to JSON. The Java
request for end offsets is created only once, and is changed if the topics change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.spark.connector import KNOWN_GOOD
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed
from cloudevents_kafka.spark.pipeline.topics._topics import call_java

T = TypeVar("T")
_Place = Annotated[str, msgspec.Meta(pattern=r"-\d+$")]
Places = frozenset[tuple[str, int]]
Offsets = Mapping[str, Mapping[str, int]]
"""Offsets by topic and partition; topics and partitions are text."""


class DescribedTopic(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of Java's ``TopicDescription`` that the pipeline needs."""

    topic_id: str
    partitions: list[msgspec.Raw]


class _Offset(msgspec.Struct, frozen=True):
    """The field of Java's ``ListOffsetsResultInfo`` that the pipeline needs."""

    offset: int


class Answers:
    """Reads the fields of a Java client's answers directly, because the answers are not Java beans.

    Raises `PipelineFailed` if the answers of the client do not have the expected fields. Answers without
    these fields are possible only with a version of Kafka's client that no release of Spark contains.
    """

    def __init__(self, jvm: Any) -> None:
        jackson, common = jvm.com.fasterxml.jackson, jvm.org.apache.kafka.common
        serializers = jackson.databind.ser.std
        module = jackson.databind.module.SimpleModule()
        module.addSerializer(common.Uuid.ZERO_UUID.getClass(), serializers.ToStringSerializer.instance)
        module.addSerializer(common.Node.noNode().getClass(), serializers.NullSerializer.instance)
        self._mapper = jackson.databind.ObjectMapper().registerModule(module)
        fields = jackson.annotation.PropertyAccessor.FIELD
        self._mapper.setVisibility(fields, jackson.annotation.JsonAutoDetect.Visibility.ANY)
        self._mapper.configOverride(jvm.java.util.Optional.empty().getClass()).setIsIgnoredType(True)

    def topics(self, described: Any) -> dict[str, DescribedTopic]:
        """Return the descriptions in a Java map by the topics' names."""
        return self._read(described, dict[str, DescribedTopic])

    def offsets(self, found: Any) -> Offsets:
        """Return the offsets in a Java map by topic and partition."""
        offsets: dict[str, dict[str, int]] = {}
        for place, info in self._read(found, dict[_Place, _Offset]).items():
            topic, _, partition = place.rpartition("-")
            offsets.setdefault(topic, {})[partition] = info.offset
        return offsets

    def _read(self, answer: Any, type_: type[T]) -> T:
        text = call_java(lambda: self._mapper.writeValueAsString(answer))
        try:
            return msgspec.json.decode(text, type=type_)
        except msgspec.MsgspecError as error:
            raise PipelineFailed(
                f"Kafka's AdminClient must answer as in PySpark {' or '.join(KNOWN_GOOD)}, got "
                f"{preview(text, 200)}: {error}. Install one of these versions, with its connector",
                final=True,
            ) from error


class EndRequest:
    """Java's request for the end offsets of partitions.

    The request is created once, and is changed only if the partitions change.
    """

    def __init__(self, new_map: Callable[[], Any], new_place: Callable[[str, int], Any], latest: Any) -> None:
        self._new_map, self._new_place, self._latest = new_map, new_place, latest
        self._map: Any = None
        self._places: Mapping[tuple[str, int], Any] = {}

    def of(self, places: Places) -> Any:
        """Return the Java request for the end offsets of these partitions."""
        kept = {place: one for place, one in self._places.items() if place in places}
        if self._map is None or len(kept) < len(self._places):
            self._map = self._new_map()
            for one in kept.values():
                self._map.put(one, self._latest)
        for place in sorted(places - kept.keys()):
            kept[place] = self._new_place(*place)
            self._map.put(kept[place], self._latest)
        self._places = kept
        return self._map
