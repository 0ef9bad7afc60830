"""Callbacks of deliveries with the real client, each in a process of its own, which a wrong call ends."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.cases import each

START = """
import asyncio, logging, os, sys, threading, time
from confluent_kafka import Producer
from cloudevents_kafka import AsyncEventProducer, DeliveryError, Event, EventProducer
from cloudevents_kafka.clients.observing import Observer

MOCK = {"test.mock.num.brokers": 1, "log_level": 0}
AWAY = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "message.timeout.ms": 200}

def order(number):
    return Event(id=str(number), source="/shop", type="order.placed")

def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
"""


def run(program: str, *, timeout: float = 60) -> str:
    """Run a program, which must end by itself, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize(
    "way",
    [
        "send",
        pytest.param("send_record", marks=pytest.mark.release),
        pytest.param("flush", marks=pytest.mark.release),
        pytest.param("result", marks=pytest.mark.release),
        "a thread that flushes",
    ],
)
def test_a_callback_sends_to_another_topic(way: str) -> None:
    """Five events that are refused together are sent to a fallback topic, and all are reported."""
    printed = run(f"""
    way = {way!r}
    client = Producer(AWAY)
    producer = EventProducer(client, topic="orders")
    failed, again = [], []

    def fall_back(delivery):
        failed.append(delivery.event.id)
        if way == "send_record":
            from cloudevents_kafka import to_record
            again.append(producer.send_record(to_record(delivery.event), "fallback"))
            return
        again.append(producer.send(delivery.event, "fallback"))
        if way == "flush":
            try:
                producer.flush(0.01)
            except DeliveryError:
                pass
        elif way == "result":
            try:
                again[-1].result(5)
            except DeliveryError as error:
                assert "timed out" in str(error), error
        elif way == "a thread that flushes":
            threading.Thread(target=client.flush, args=(1,)).start()

    for number in range(5):
        producer.send(order(number), on_delivery=fall_back)
    until(lambda: len(again) == 5 and all(each.done for each in again))
    print(failed, len(again))
    """)
    assert printed == "['0', '1', '2', '3', '4'] 5\n"


@pytest.mark.parametrize(
    "call",
    [
        "poll(1)",
        pytest.param("flush(1)", marks=pytest.mark.release),
        pytest.param("purge()", marks=pytest.mark.release),
        "abort_transaction()",
    ],
)
def test_a_callback_that_sends_in_a_call_of_the_user(call: str) -> None:
    """The user polls, flushes, purges or ends a transaction himself; the callback may send."""
    printed = run(f"""
    call = {call!r}
    settings = dict(MOCK)
    if call.startswith("abort"):
        settings["transactional.id"] = "t"
    client = Producer(settings)
    if "transactional.id" in settings:
        client.init_transactions(10)
        client.begin_transaction()
    producer = EventProducer(client, topic="orders")
    again = []

    def fall_back(delivery):
        try:
            again.append(producer.send(delivery.event, "fallback"))
        except Exception as error:
            again.append(error)

    for number in range(5):
        producer.send(order(number), on_delivery=fall_back)
    for _ in range(20):
        eval("client." + call)
        if len(again) == 5 or call.startswith("abort"):
            break
        time.sleep(0.05)
    until(lambda: len(again) == 5)
    print(len(again))
    """)
    assert printed == "5\n"


def test_an_observer_sends() -> None:
    """`delivered` of an observer sends what it has seen, once, to another topic."""
    printed = run("""
    class Copies(Observer):
        def delivered(self, notice):
            if notice.topic == "orders":
                copies.append(producer.send(notice.event, "copies"))

    copies = []
    producer = EventProducer(Producer(MOCK), topic="orders", observers=[Copies()])
    for number in range(50):
        producer.send(order(number))
    until(lambda: len(copies) == 50)
    producer.flush(20)
    print(all(each.offset is not None for each in copies))
    """)
    assert printed == "True\n"


@each("kind", ["sync", "asyncio"])
@pytest.mark.parametrize(
    "order", ["the client first", pytest.param("the client only", marks=pytest.mark.release)]
)
def test_a_client_that_is_closed_outside(kind: str, order: str) -> None:
    """`with Producer(…)` ends before ours, or ours is never closed: no crash, no wait without end."""
    printed = run(f"""
    first = {order == "the client first"!r}

    def sync(settings):
        with Producer(settings) as client:
            producer = EventProducer(client, topic="orders")
            deliveries = [producer.send(order(number)) for number in range(100)]
        until(lambda: all(each.done for each in deliveries))
        if first:
            try:
                producer.close(5)
            except DeliveryError:
                pass

    async def awaited(settings):
        with Producer(settings) as client:
            producer = AsyncEventProducer(client, topic="orders")
            deliveries = [producer.send_nowait(order(number)) for number in range(100)]
        until(lambda: all(each.done for each in deliveries))
        if first:
            try:
                await producer.close(5)
            except DeliveryError:
                pass

    for settings in (MOCK, AWAY) * 3:
        if {kind!r} == "sync":
            sync(settings)
        else:
            asyncio.run(awaited(settings))
    print("ended")
    """)
    assert printed == "ended\n"


def test_callbacks_of_the_client_are_not_of_an_event() -> None:
    """An error of error_cb comes out of no send, flush or result, and is logged."""
    printed = run("""
    seen = []

    class Seen(logging.Handler):
        def emit(self, record):
            seen.append(record.getMessage())

    logging.getLogger("cloudevents_kafka.deliveries").addHandler(Seen())

    def error_cb(error):
        raise RuntimeError("in error_cb")

    producer = EventProducer(Producer({**AWAY, "error_cb": error_cb}), topic="orders")
    for number in range(10):
        producer.send(order(number))
        time.sleep(0.05)
    try:
        producer.flush(5)
    except DeliveryError as error:
        print(len(error.failed))
    print(seen[0])
    """)
    assert printed == "10\npolling the Kafka producer has failed: in error_cb\n"


def test_a_callback_of_the_client_may_send_but_not_wait() -> None:
    """``stats_cb`` runs within a poll: it sends by the same producer; result() and flush() are refused."""
    printed = run("""
    said, sent = set(), []

    def stats_cb(_):
        sent.append(producer.send(order(1)))
        for wait in (sent[-1].result, producer.flush):
            try:
                wait(5)
            except RuntimeError as error:
                said.add(str(error).partition(",")[0])

    producer = EventProducer(
        {**MOCK, "statistics.interval.ms": 50, "linger.ms": 300, "stats_cb": stats_cb}, topic="orders"
    )
    while len(said) < 2 or len(sent) < 5:
        producer.send(order(0))
        time.sleep(0.05)
    print(*sorted(said), sep="\\n", flush=True)
    os._exit(0)
    """)
    assert printed == (
        "flush must not be called in a callback of the client\n"
        "result must not be called in a callback of the client\n"
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_is_refused() -> None:
    """`send`, `result` and `flush` in a child that was forked later raise, and so does asyncio's producer."""
    printed = run("""
    producer = EventProducer(Producer(MOCK), topic="orders")
    delivery = producer.send(order(1))
    other = AsyncEventProducer(Producer(MOCK), topic="orders")

    async def send():
        await other.send(order(2))

    child = os.fork()
    if not child:
        again = lambda: producer.send(order(2))
        for call in (again, delivery.result, producer.flush, lambda: asyncio.run(send())):
            try:
                call()
            except RuntimeError as error:
                print(str(error).partition(",")[0], flush=True)
        producer.close()  # which the parent does
        os._exit(0)
    os.waitpid(child, 0)
    print(delivery.result(20).offset)
    """)
    refused = "a producer must be used in the process that has made it\n"
    assert printed == refused * 4 + "0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_locks_are_free_in_a_child() -> None:
    """A child registers formats and codecs although a thread of the parent held the lock at the fork."""
    printed = run("""
    from cloudevents_kafka.primitives.locks import registration_lock
    from cloudevents_kafka import register_codec, Codec

    held, left = threading.Event(), threading.Event()

    def hold():
        with registration_lock:
            held.set()
            left.wait(20)

    threading.Thread(target=hold).start()
    held.wait(20)
    child = os.fork()
    if not child:
        register_codec("text/x-child", Codec(encode=lambda value: b"", decode=lambda payload: None))
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    left.set()
    """)
    assert printed == "7\n"


def test_a_hanging_close_is_bounded() -> None:
    """A client whose calls hang, as during a transaction, is left within the bound."""
    printed = run("""
    class Hanging:
        def __init__(self):
            self.never = threading.Event()
        def __len__(self):
            return 1
        def produce(self, *_, **__):
            pass
        def poll(self, timeout=-1):
            return 0
        def flush(self, timeout=-1):
            self.never.wait()
        def purge(self):
            self.never.wait()
        def close(self):
            self.never.wait()

    import cloudevents_kafka.clients._polling as polling
    polling._CLOSE_SECONDS = 0.3
    for kind in (EventProducer, AsyncEventProducer):
        began = time.monotonic()
        producer = kind(Hanging(), topic="orders", close_timeout=0.2)
        if kind is EventProducer:
            producer._polling._is_owned = True
            producer.send(order(1))
            try:
                producer.close()
            except DeliveryError as error:
                print(len(error.failed))
        else:
            async def work():
                producer._sender._is_owned = True
                producer.send_nowait(order(1))
                try:
                    await producer.close()
                except DeliveryError as error:
                    print(len(error.failed))
            asyncio.run(work())
        assert time.monotonic() - began < 10
    """)
    assert printed == "1\n1\n"
