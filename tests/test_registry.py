"""Registrations: shared by threads, passed to other processes, and restored."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cloudevents_kafka import (
    AttributeType,
    Codec,
    Decoded,
    Record,
    Undecodable,
    codecs,
    decode,
    from_record,
    to_record,
)
from cloudevents_kafka.attributes import extension_types
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.registry import (
    register_all,
    register_codec,
    register_extension,
    register_format,
    registered,
    temporarily,
)
from tests.support import strategies as make


def state() -> tuple[object, ...]:
    return (
        extension_types.current.table.extensions,
        extension_types.current.table.constrained,
        formats.names(),
        vars(formats.find("json"))["_text_data"],
        codecs.registry.registered(),
        registered(),
    )


def test_registrations_are_restored() -> None:
    """Replaced registrations are restored, also if the block raises an error."""
    before = state()
    with pytest.raises(ZeroDivisionError), temporarily():  # noqa: PT012 - the block is what is tested
        register_extension("mycount", AttributeType.INTEGER, needs=["partitionkey"])
        register_extension("traceparent", AttributeType.BINARY)
        register_format("json", lambda: JsonFormat(text_data=True))
        register_format("lines", JsonFormat)
        register_codec("application/json", Codec())
        assert all(one != other for one, other in zip(before, state(), strict=True))
        raise ZeroDivisionError
    assert state() == before


@pytest.mark.usefixtures("registry")
def test_another_process_adopts_what_is_registered() -> None:
    """Documented extensions are known anyway; registering again changes nothing."""
    assert "sampledrate" not in registered()[0]
    register_extension("mycount", AttributeType.INTEGER)
    register_format("lines", JsonFormat)
    mine = registered()
    with temporarily():
        register_extension("mycount", AttributeType.STRING)
        register_extension("other", AttributeType.URI)
        register_all(mine)
        assert extension_types.type_of("mycount") is AttributeType.INTEGER
        assert extension_types.type_of("other") is AttributeType.URI
    found = formats.find("lines")
    register_all(mine)
    assert registered() == mine
    assert formats.find("lines") is found


@pytest.mark.usefixtures("registry")
def test_registrations_of_two_processes_do_not_mix() -> None:
    """What one process registered is not there for the next one; what is registered here stays."""
    register_all(({}, {}))  # without what a test of Spark, whose functions ran here, has left
    before = registered()[0].keys()
    with temporarily():
        register_extension("first", AttributeType.INTEGER)
        register_format("lines", JsonFormat)
        first = registered()
    register_extension("own", AttributeType.URI)
    for _ in range(2):
        register_all(first)
        assert registered()[0].keys() == {*before, "first", "own"}
        assert "lines" in formats.names()
    register_all(({}, {}))
    assert registered()[0].keys() == {*before, "own"}
    assert "lines" not in formats.names()
    register_all(registered())
    register_all(({}, {}))
    assert registered()[0].keys() == {*before, "own"}


@pytest.mark.usefixtures("registry")
def test_other_threads_find_earlier_registrations() -> None:
    """While one thread registers, others always find earlier registrations."""
    stop = threading.Event()
    missed: list[str] = []

    def find() -> None:
        while not stop.is_set():
            if formats.find("json") is None:
                missed.append("json")
            if (
                "sampledrate" not in extension_types.current.table.constrained
                or extension_types.find_extension("sampledrate") is None
            ):
                missed.append("sampledrate")

    reader = threading.Thread(target=find)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    reader.start()
    try:
        for number in range(200):
            with temporarily():
                register_extension(f"x{number}", AttributeType.INTEGER)
                register_format("lines", JsonFormat)
    finally:
        stop.set()
        reader.join()
        sys.setswitchinterval(interval)
    assert missed == []


COUNT = [*make.required_headers, ("ce_first", b"1"), ("ce_attempt", b"5")]


def forms_of(headers: list[tuple[str, bytes | None]]) -> list[Record]:
    """Return records of the event in binary mode and in every format."""
    event = from_record(Record(headers=headers))
    return [
        to_record(event),
        *(to_record(event, mode="structured", format=name) for name in formats.writable()),
    ]


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("type_", [AttributeType.INTEGER, AttributeType.BINARY, AttributeType.TIMESTAMP])
def test_one_reading_uses_one_table(type_: AttributeType, *, lenient: bool) -> None:
    """A registration during a read applies from the next one on."""
    for record in forms_of(COUNT):
        with temporarily():

            def accepts(_: object) -> bool:
                register_extension("attempt", type_)
                return True

            register_extension("first", AttributeType.STRING, accepts=accepts)
            read = decode(record, lenient=lenient)
            assert isinstance(read, Decoded)
            assert read.tolerated == ()
            assert read.event.text("attempt") == "5"
            again = decode(record, lenient=lenient)
            assert isinstance(again, Decoded if type_ is AttributeType.INTEGER or lenient else Undecodable)


@pytest.mark.usefixtures("registry")
def test_names_cached_by_another_table_are_not_used() -> None:
    """A thread that caches a name after its registration does not hide it."""
    before = extension_types.current.table
    register_extension("attempt", AttributeType.INTEGER)
    before.text_names.add("attempt")
    before.header_names["ce_attempt"] = "attempt"
    assert from_record(Record(headers=COUNT))["attempt"] == 5


@pytest.mark.usefixtures("registry")
def test_a_record_stays_valid_during_registrations() -> None:
    """A record is an event before and after a registration by another thread."""
    record = Record(headers=COUNT)
    stop = threading.Event()
    bad: list[object] = []

    def read() -> None:
        while not stop.is_set():
            result = decode(record)
            if not isinstance(result, Decoded):
                bad.append(result.error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for reader in readers:
        reader.start()
    try:
        for _ in range(500):
            with temporarily():
                register_extension("attempt", AttributeType.INTEGER)
    finally:
        stop.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(interval)
    assert bad == []


def test_threads_that_register_at_once_lose_nothing() -> None:
    """Registrations of several threads are all kept."""

    def register(thread: int) -> None:
        ready.wait()
        for number in range(50):
            name = f"x{thread}y{number}"
            register_extension(name, AttributeType.INTEGER)
            register_format(name, JsonFormat)
            register_codec(f"application/{name}", Codec())

    interval = sys.getswitchinterval()
    with temporarily():
        ready = threading.Barrier(8)
        threads = [threading.Thread(target=register, args=(number,)) for number in range(8)]
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        names = {f"x{thread}y{number}" for thread in range(8) for number in range(50)}
        assert names <= extension_types.current.table.registered.keys()
        assert names <= set(formats.names())
        assert len(codecs.registry.registered()) >= 400


def test_threads_share_the_format_that_is_made() -> None:
    """A format is created once, also if several threads use it first."""
    made: list[JsonFormat] = []

    def make_slowly() -> JsonFormat:
        time.sleep(0.05)
        made.append(JsonFormat())
        return made[-1]

    with temporarily(), ThreadPoolExecutor(4) as pool:
        register_format("slow", make_slowly)
        found = list(pool.map(formats.find, ["slow"] * 4))
    assert found == made * 4
    assert len(made) == 1
