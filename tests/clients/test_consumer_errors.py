"""EventConsumer on a real broker whose topics, members, rights and process come and go."""

from __future__ import annotations

import logging
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from cloudevents_kafka import ConsumeError, Decoded, Event, EventConsumer, EventProducer
from cloudevents_kafka.testing import LocalBroker

pytestmark = pytest.mark.broker

QUIET = {"log_level": 0}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": True,
    "group.min.session.timeout.ms": 500,
}
SECONDS = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    """A broker with an authorizer, which these tests may kill."""
    with LocalBroker(properties=SETTINGS) as broker:
        yield broker


@pytest.fixture
def topic() -> str:
    return f"orders-{uuid.uuid4()}"


def send(broker: LocalBroker, topic: str, *ids: str) -> None:
    client = Producer({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    with EventProducer(client, topic=topic) as producer:
        for id in ids:
            producer.send(Event(id=id, source="/shop", type="order.placed"))


def reading(broker: LocalBroker, topic: str, **settings: Any) -> EventConsumer[Consumer]:
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"g-{uuid.uuid4()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 200,
            "session.timeout.ms": 1500,
            **QUIET,
            **settings,
        }
    )
    client.subscribe([topic])
    return EventConsumer(client)


def take_until(events: EventConsumer[Any], done: Callable[[list[str]], bool]) -> list[str]:
    """Return the ids of events, each committed, until the function of all ids is true."""
    ids: list[str] = []
    end = time.monotonic() + SECONDS
    while not done(ids):
        assert time.monotonic() < end, f"got {ids}"
        item = events.poll(0.1)
        if item is not None:
            assert isinstance(item, Decoded)
            ids.append(item.event.id)
            events.commit(item)
    return ids


def logged(caplog: pytest.LogCaptureFixture, code: str) -> bool:
    """Return whether the consumer has logged an error of the client, and no other."""
    found = [record for record in caplog.records if record.name == "cloudevents_kafka.consumer"]
    assert all(record.levelno == logging.WARNING and code in record.getMessage() for record in found)
    return bool(found)


@pytest.mark.release
def test_a_topic_that_appears_late(broker: LocalBroker, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    """The consumer waits for the topic, and its records arrive."""
    with reading(broker, topic) as events:
        assert take_until(events, lambda ids: logged(caplog, "UNKNOWN_TOPIC_OR_PART")) == []
        assert caplog.records[0].getMessage().startswith(f"{topic}: the consumer failed")
        broker.create_topic(topic)
        send(broker, topic, "1")
        assert take_until(events, bool) == ["1"]


def test_a_member_that_was_slow(broker: LocalBroker, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    """A member that polls too late joins again, and reads on after what it has committed."""
    broker.create_topic(topic)
    send(broker, topic, "1", "2")
    slow = {"max.poll.interval.ms": 1000, "session.timeout.ms": 1000}
    with reading(broker, topic, **slow) as events:
        assert take_until(events, bool) == ["1"]
        time.sleep(2)
        assert take_until(events, bool) == ["2"]
        assert logged(caplog, "_MAX_POLL_EXCEEDED")


def test_a_topic_that_is_deleted(broker: LocalBroker, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    """The loop goes on, and reads the topic from its start when it is created again."""
    broker.create_topic(topic)
    send(broker, topic, "1")
    with reading(broker, topic) as events:
        assert take_until(events, bool) == ["1"]
        broker.delete_topic(topic)
        take_until(events, lambda ids: logged(caplog, "UNKNOWN_TOPIC_OR_PART"))
        broker.create_topic(topic)
        send(broker, topic, "2")
        assert take_until(events, lambda ids: "2" in ids) == ["2"]


def test_two_members_with_one_instance_id(broker: LocalBroker, topic: str) -> None:
    """The first is fenced: the error says what to do, and on_error cannot go on after it."""
    broker.create_topic(topic)
    send(broker, topic, "1")
    static = {"group.id": f"g-{uuid.uuid4()}", "group.instance.id": "one", "heartbeat.interval.ms": 100}
    client = reading(broker, topic, **static).consumer
    fenced = r"same group.instance.id: use a unique id"
    with EventConsumer(client, on_error=lambda _: True) as first:
        assert take_until(first, bool) == ["1"]
        # A consumer joins the group once it subscribes, not with its first poll.
        with (
            reading(broker, topic, **static) as second,
            pytest.raises(ConsumeError, match=fenced) as caught,
        ):
            take_until(first, lambda _: bool(second.poll(0)) and False)
        assert caught.value.final


def change_rights(broker: LocalBroker, resource: ResourceType, name: str, *, deny: bool) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **QUIET})
    rule = (resource, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.READ)
    deny_read = (*rule, AclPermissionType.DENY)
    futures: dict[Any, Any] = (
        admin.create_acls([AclBinding(*deny_read)])
        if deny
        else admin.delete_acls([AclBindingFilter(*deny_read)])
    )
    for future in futures.values():
        future.result(timeout=SECONDS)


def test_authorization_that_is_taken_away(broker: LocalBroker, topic: str) -> None:
    """The error says which right is missing; when it is granted again, reading continues."""
    broker.create_topic(topic)
    send(broker, topic, "1")
    with reading(broker, topic) as events:
        assert take_until(events, bool) == ["1"]
        change_rights(broker, ResourceType.TOPIC, topic, deny=True)
        with pytest.raises(ConsumeError, match="grant the client READ and DESCRIBE on the topic") as caught:
            take_until(events, bool)
        assert caught.value.final
        assert caught.value.where.startswith(topic)
        change_rights(broker, ResourceType.TOPIC, topic, deny=False)
        send(broker, topic, "2")
        while True:
            try:
                assert take_until(events, bool) == ["2"]
            except ConsumeError as error:  # of a fetch before the right was granted
                assert error.final  # noqa: PT017  # what comes next is the assertion
            else:
                break


def test_a_group_without_rights(broker: LocalBroker, topic: str) -> None:
    """The error says which right is missing; on_error can wait for it."""
    broker.create_topic(topic)
    send(broker, topic, "1")
    group = f"g-{uuid.uuid4()}"
    change_rights(broker, ResourceType.GROUP, group, deny=True)
    with (
        reading(broker, topic, **{"group.id": group}) as events,
        pytest.raises(ConsumeError, match="grant the client READ on the group"),
    ):
        take_until(events, bool)
    seen: list[int] = []

    def wait(error: ConsumeError) -> bool:
        assert isinstance(error.error, KafkaError)
        if not seen:
            change_rights(broker, ResourceType.GROUP, group, deny=False)
        seen.append(error.error.code())
        return True

    client = reading(broker, topic, **{"group.id": group}).consumer
    with EventConsumer(client, on_error=wait) as waiting:
        assert take_until(waiting, bool) == ["1"]
    assert set(seen) == {KafkaError.GROUP_AUTHORIZATION_FAILED}


@pytest.mark.release
@pytest.mark.parametrize("silent", [False, True])
def test_a_run_ends_in_time_while_the_broker_is_away(
    broker: LocalBroker, topic: str, monkeypatch: pytest.MonkeyPatch, *, silent: bool
) -> None:
    """Its bound is kept, and closing takes short: the client waits for no commit that is under way."""
    monkeypatch.setattr("cloudevents_kafka.clients._run._COMMIT_SECONDS", 0.3)
    broker.create_topic(topic)
    send(broker, topic, *map(str, range(20)))
    done: list[str] = []

    def handle(item: Decoded) -> None:
        if item.event.id == "3":
            os.kill(broker.pid, signal.SIGSTOP) if silent else broker.kill()
            took.append(time.monotonic())
        if item.event.id == "13":
            events.stop()
        done.append(item.event.id)
        time.sleep(0.1)

    took: list[float] = []
    with reading(broker, topic, **{"session.timeout.ms": 45_000}) as events:
        events.run(handle, stop_timeout=3)
        took.append(time.monotonic())
    took.append(time.monotonic())
    os.kill(broker.pid, signal.SIGCONT) if silent else broker.start()
    assert done[:14] == [str(number) for number in range(14)]
    assert took[1] - took[0] < 7
    assert took[2] - took[1] < (7 if silent else 2)  # a commit under way would take 45 s


@pytest.mark.parametrize(
    "seconds",
    [
        # `test_a_run_ends_in_time_while_the_broker_is_away` is their sample.
        pytest.param(2, marks=pytest.mark.release),
        pytest.param(60, marks=[pytest.mark.release, pytest.mark.timeout(180)]),
    ],
)
def test_a_broker_that_is_away(
    broker: LocalBroker, topic: str, seconds: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The loop waits, and reads on after what it has committed."""
    broker.create_topic(topic)
    send(broker, topic, "1")
    with reading(broker, topic) as events:
        assert take_until(events, bool) == ["1"]
        broker.kill()
        assert list(events.items(idle_timeout=seconds)) == []
        broker.start()
        send(broker, topic, "2")
        assert take_until(events, bool) == ["2"]
