"""What users register: shared by threads, taken along to other processes, and forgotten where asked."""

from __future__ import annotations

import sys
import threading

import pytest

from cloudevents_kafka import AttributeType, Codec, codecs, extensions, formats
from cloudevents_kafka.formats.json import JsonFormat
from cloudevents_kafka.registry import (
    adopt,
    register_codec,
    register_extension,
    register_format,
    registered,
    temporarily,
)


def state() -> tuple[object, ...]:
    return (
        dict(extensions._extensions),
        extensions.ruled(),
        formats.names(),
        vars(formats.find("json")),
        codecs.registered(),
        registered(),
    )


def test_what_is_registered_for_a_while_is_forgotten() -> None:
    """Even where the block failed; what was replaced is as it was."""
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
    """Documented extensions are known there anyway; adopting again does nothing."""
    assert registered() == ({}, {})
    register_extension("mycount", AttributeType.INTEGER)
    register_format("lines", JsonFormat)
    mine = registered()
    with temporarily():
        register_extension("mycount", AttributeType.STRING)
        register_extension("other", AttributeType.URI)
        adopt(mine)
        assert extensions.type_of("mycount") is AttributeType.INTEGER
        assert extensions.type_of("other") is AttributeType.URI
    made = formats.find("lines")
    adopt(mine)
    assert registered() == mine
    assert formats.find("lines") is made


@pytest.mark.usefixtures("registry")
def test_registering_takes_nothing_away_from_other_threads() -> None:
    """While one thread registers, others find at any moment what was there all along."""
    stop = threading.Event()
    missed: list[str] = []

    def look() -> None:
        while not stop.is_set():
            if formats.find("json") is None:
                missed.append("json")
            if not extensions.is_ruled("sampledrate") or extensions.known("sampledrate") is None:
                missed.append("sampledrate")

    reader = threading.Thread(target=look)
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
