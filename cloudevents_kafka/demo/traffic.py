"""The records of the demo: events in every content mode and format, mixed with invalid records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

import msgspec

from cloudevents_kafka.binding import ContentMode, from_record, to_record
from cloudevents_kafka.demo._invalid_records import INVALID_RECORDS, InvalidRecord
from cloudevents_kafka.demo._shop import generate_events
from cloudevents_kafka.errors import CloudEventsKafkaError, DecodeError, EncodeError
from cloudevents_kafka.event import Event
from cloudevents_kafka.formats.registry import content_type_of
from cloudevents_kafka.record import Record

_EVENTS_PER_INVALID_RECORD: Final = 25


class Encoding(msgspec.Struct, frozen=True):
    """A content mode and, for structured mode, an event format."""

    mode: ContentMode
    format: str | None = None

    def __str__(self) -> str:
        return self.mode if self.format is None else f"{self.mode} {self.format}"


ENCODINGS: Final = (Encoding("binary"), Encoding("structured", "json"), Encoding("structured", "avro"))
_WEIGHTS: Final = (6, 2, 2)  # of the encodings


class InvalidLine(CloudEventsKafkaError):
    """A line of a file is not a valid event."""

    def __init__(self, file: str, number: int, reason: str) -> None:
        super().__init__(f"{file}:{number}: {reason}")


Item = tuple[Event, Encoding] | InvalidRecord
"""An event with its encoding, or a kind of invalid record."""


def shop_traffic(seed: int, count: int) -> Iterator[Item]:
    """Yield ``count`` events of the shop, mixed with all kinds of invalid records.

    The same seed yields the same items.
    """
    random = Random(seed)
    invalid = _invalid_records(random, count)
    if count < len(invalid):
        yield from _encoded_events(random, seed, count)
        yield from invalid
        return
    before = {number * count // len(invalid): record for number, record in enumerate(invalid)}
    for number, item in enumerate(_encoded_events(random, seed, count)):
        if number in before:
            yield before[number]
        yield item


def _encoded_events(random: Random, seed: int, count: int) -> Iterator[Item]:
    for event in generate_events(seed, count):
        yield event, random.choices(ENCODINGS, _WEIGHTS)[0]


def _invalid_records(random: Random, count: int) -> list[InvalidRecord]:
    rounds = max(1, count // (_EVENTS_PER_INVALID_RECORD * len(INVALID_RECORDS)))
    return [kind for _ in range(rounds) for kind in random.sample(INVALID_RECORDS, len(INVALID_RECORDS))]


def file_traffic(name: str, lines: Iterable[bytes]) -> Iterator[Item | InvalidLine]:
    """Yield the events of JSON lines, with the encodings in turn; an `InvalidLine` for other lines."""
    turn = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = _parse_event(line.strip())
            encoding = _next_encoding(event, turn)
        except DecodeError as error:
            yield InvalidLine(name, number, error.reason)
        except EncodeError as error:
            yield InvalidLine(name, number, str(error))
        else:
            turn += 1
            yield event, encoding


def _parse_event(line: bytes) -> Event:
    return from_record(Record(value=line, headers=[("content-type", content_type_of("json"))]))


def _next_encoding(event: Event, turn: int) -> Encoding:
    """Return the encoding whose turn it is, or the next one that can encode the event."""
    for step in range(len(ENCODINGS)):
        encoding = ENCODINGS[(turn + step) % len(ENCODINGS)]
        try:
            to_record(event, mode=encoding.mode, format=encoding.format)
        except EncodeError:
            if step == len(ENCODINGS) - 1:
                raise
        else:
            return encoding
    raise AssertionError("ENCODINGS is not empty")
