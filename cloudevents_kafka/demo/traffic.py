"""What goes into the demo's topic: each event in a mode and format of its own, and strays between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

import msgspec

from cloudevents_kafka.binding import ContentMode, from_record, to_record
from cloudevents_kafka.demo import shop
from cloudevents_kafka.demo.invalid_records import STRAYS, Stray
from cloudevents_kafka.errors import CloudEventsKafkaError, DecodeError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.registry import content_type_of
from cloudevents_kafka.record import Record

_EVENTS_PER_STRAY: Final = 25


class Way(msgspec.Struct, frozen=True):
    """How an event goes onto Kafka."""

    mode: ContentMode
    format: str | None = None

    def __str__(self) -> str:
        return self.mode if self.format is None else f"{self.mode} {self.format}"


WAYS: Final = (Way("binary"), Way("structured", "json"), Way("structured", "avro"))
# Of ten events, as many go each way.
_SHARES: Final = (6, 2, 2)


class BadLine(CloudEventsKafkaError):
    """A line of a file of events that is none."""

    def __init__(self, file: str, number: int, reason: str) -> None:
        super().__init__(f"{file}:{number}: {reason}")


Item = tuple[Event, Way] | Stray
"""An event and the way it goes, or a kind of stray."""


def of_shop(seed: int, count: int) -> Iterator[Item]:
    """Mix the shop's events with strays of each kind; the same seed gives the same traffic."""
    random = Random(seed)
    strays = _strays(random, count)
    before = {number * count // len(strays): stray for number, stray in enumerate(strays)}
    left = list(strays) if count < len(strays) else []
    for number, event in enumerate(shop.events(seed, count)):
        if number in before and not left:
            yield before[number]
        yield event, random.choices(WAYS, _SHARES)[0]
    yield from left


def _strays(random: Random, count: int) -> list[Stray]:
    rounds = max(1, count // (_EVENTS_PER_STRAY * len(STRAYS)))
    return [stray for _ in range(rounds) for stray in random.sample(STRAYS, len(STRAYS))]


def of_file(name: str, lines: Iterable[bytes]) -> Iterator[Item | BadLine]:
    """Read events as JSON lines, to go all ways in turn; a line that is no event gives a `BadLine`."""
    turn = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = _event_of(line.strip())
            way = _way(event, turn)
        except DecodeError as error:
            yield BadLine(name, number, error.reason)
        except EncodeError as error:
            yield BadLine(name, number, str(error))
        else:
            turn += 1
            yield event, way


def _event_of(line: bytes) -> Event:
    return from_record(Record(value=line, headers=[("content-type", content_type_of("json"))]))


def _way(event: Event, turn: int) -> Way:
    """Give the way whose turn it is, or the next that can hold the event."""
    for step in range(len(WAYS)):
        way = WAYS[(turn + step) % len(WAYS)]
        try:
            to_record(event, mode=way.mode, format=way.format)
        except EncodeError:
            if step == len(WAYS) - 1:
                raise
        else:
            return way
    raise AssertionError("there is at least one way")
