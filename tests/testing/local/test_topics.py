"""A topic that was created can be used at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from cloudevents_kafka.testing.local import clients


class SlowAdmin:
    """A client of a broker that learns of its new topic, then of its leaders, some questions later."""

    def __init__(self, *answers: Any) -> None:
        self.answers: Iterator[Any] = iter(answers)

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, Future[None]]:
        created: Future[None] = Future()
        created.set_result(None)
        return {topics[0].topic: created}

    def describe_topics(self, topics: Any) -> dict[str, Future[Any]]:
        answer, described = next(self.answers), Future[Any]()
        if isinstance(answer, int):
            described.set_exception(KafkaException(KafkaError(answer)))
        else:
            partitions = [SimpleNamespace(leader=leader) for leader in answer]
            described.set_result(SimpleNamespace(partitions=partitions))
        return {"orders": described}


def created_by(monkeypatch: pytest.MonkeyPatch, admin: SlowAdmin) -> list[Any]:
    """Create a topic by a client; return the answers that were not asked for."""
    monkeypatch.setattr(clients, "_admin_client", lambda _: admin)
    clients.create_topic("127.0.0.1:1", "orders", 2, {})
    return list(admin.answers)


def test_a_created_topic_has_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function returns only when the broker shows a leader of each partition."""
    unknown = KafkaError.UNKNOWN_TOPIC_OR_PART
    answers = [unknown, unknown, ["node", None], ["node", "node"], "not asked for"]
    assert created_by(monkeypatch, SlowAdmin(*answers)) == ["not asked for"]


def test_a_refusal_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not describe the topic to this user ends the wait with its reason."""
    with pytest.raises(KafkaException, match="authorization"):
        created_by(monkeypatch, SlowAdmin(KafkaError.TOPIC_AUTHORIZATION_FAILED))
