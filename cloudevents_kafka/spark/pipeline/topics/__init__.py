"""The topics that a pipeline reads: an admin client looks up their ids, partitions and offsets."""

from cloudevents_kafka.spark.pipeline.topics._admin import KafkaAdmin
from cloudevents_kafka.spark.pipeline.topics._group import GroupOffsets
from cloudevents_kafka.spark.pipeline.topics._starts import find_starts
from cloudevents_kafka.spark.pipeline.topics._topics import TopicAdmin, TopicChanged, TopicMonitor, TopicState
