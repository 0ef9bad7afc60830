"""Answers of Kafka's AdminClient as JSON: read by their fields, or refused with what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from cloudevents_kafka.spark.pipeline import PipelineFailed
from cloudevents_kafka.spark.pipeline.topics._answers import Answers


def answers() -> Answers:
    """Return answers whose Jackson writes each answer, which is JSON, as it is."""
    jvm = MagicMock()
    mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper.return_value
    mapper.registerModule.return_value.writeValueAsString.side_effect = str
    return Answers(jvm)


def test_fields_of_answers() -> None:
    """A topic may have any name, and the number of its partition is behind the last hyphen."""
    topics = answers().topics('{"a-1": {"topicId": "x", "partitions": [{}, {}], "internal": false}}')
    assert (topics["a-1"].topic_id, len(topics["a-1"].partitions)) == ("x", 2)
    offsets = '{"a-1-0": {"offset": 7, "timestamp": -1}, "a-1-12": {"offset": 8}, "a-0": {"offset": -1}}'
    assert answers().offsets(offsets) == {"a-1": {"0": 7, "12": 8}, "a": {"0": -1}}


@pytest.mark.parametrize(
    ("read", "answer"),
    [
        ("topics", '{"t": {"id": "x", "partitions": []}}'),
        ("topics", '{"t": {"topicId": {"most": 1, "least": 2}, "partitions": []}}'),
        ("topics", "[]"),
        ("offsets", '{"t-0": {"endOffset": 7}}'),
        ("offsets", '{"t-0": {"offset": "7"}}'),
        ("offsets", '{"TopicIdPartition(t, 0)": {"offset": 7}}'),
        ("offsets", ""),
    ],
)
def test_other_fields(read: str, answer: Any) -> None:
    """An answer with other fields ends the run for good, with what was seen and what to do."""
    with pytest.raises(PipelineFailed, match=r"must answer as in PySpark 4\.0\.0 .*, got '") as failed:
        getattr(answers(), read)(answer)
    assert failed.value.final
    assert str(failed.value).endswith("Install one of these versions, with its connector")
    assert answer[:20] in str(failed.value)


def test_jackson_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of Java while an answer is written is one of a pipeline."""
    from py4j.protocol import Py4JJavaError

    error = Py4JJavaError.__new__(Py4JJavaError)
    kind = SimpleNamespace(getName=lambda: "com.fasterxml.jackson.databind.JsonMappingException")
    error.java_exception = SimpleNamespace(
        getClass=lambda: kind, getCause=lambda: None, toString=lambda: "JsonMappingException: deep"
    )
    reader = answers()
    monkeypatch.setattr(reader._mapper.writeValueAsString, "side_effect", error)
    with pytest.raises(PipelineFailed, match="JsonMappingException: deep"):
        reader.topics(None)
