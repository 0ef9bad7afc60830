"""Read a range of offsets from the partitions of a topic; positions such as ``earliest``, -N, ``@time``.

The end of each partition is looked up once, at the start. A partition is finished when its last
offset has been read, or when the client reports its end: the last offsets may have no record
(transaction markers, aborted transactions, compaction).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click
import msgspec

from cloudevents_kafka.attributes.timestamps import is_timestamp, to_datetime
from cloudevents_kafka.cli.kafka.session import BrokerSession, is_transient
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import option_group
from cloudevents_kafka.primitives.epoch import EPOCH, MILLISECOND
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_Command = TypeVar("_Command", bound=Callable[..., Any])
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_LAST: Final = re.compile(r"-[1-9][0-9]{0,17}", re.ASCII)
_UNUSED_GROUP: Final = "cloudevents-kafka-cli"  # the client requires a group.id
_BATCH: Final = 500
_BATCH_SECONDS: Final = 0.1  # the time to gather a batch, and the longest delay with --follow


class Position(msgspec.Struct, frozen=True):
    """A position that applies to any partition.

    ``number`` is the offset, the number of last records, or a time in milliseconds since the epoch.
    """

    kind: Literal["earliest", "latest", "offset", "last", "time", "stored"]
    number: int = 0


def parse_position(text: str) -> Position:
    """Return the position of a text such as ``-10``. Raises `ValueError`, which has the grammar."""
    if text in ("earliest", "latest", "stored"):
        return Position(text)  # type: ignore[arg-type]  # one of the three
    if _NUMBER.fullmatch(text):
        return Position("offset", int(text))
    if _LAST.fullmatch(text):
        return Position("last", -int(text))
    if text.startswith("@"):
        time = text[1:]
        if _NUMBER.fullmatch(time):
            return Position("time", int(time))
        if is_timestamp(time):  # rounded up: the first millisecond that is not before the time
            return Position("time", -((EPOCH - to_datetime(time)) // MILLISECOND))
    raise ValueError(
        "a position must be earliest, latest, N (an offset), -N (the last N), "
        f"@2026-11-21T12:00:00Z or @1795262400000 (a time, in ms), got {text!r}"
    )


class PositionType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """The type of parameters that are a `Position`."""

    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Position:
        """Return the position of a text."""
        if isinstance(value, Position):
            return value
        try:
            return parse_position(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _parse_partitions(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    parts = [part.strip() for text in texts for part in text.split(",")]
    if wrong := [part for part in parts if not (part.isascii() and part.isdigit())]:
        message = f"partitions must be numbers from 0, separated by commas, got {wrong[0]!r}"
        raise click.BadParameter(message, ctx, param)
    return tuple(dict.fromkeys(map(int, parts)))


def partitions_option(help: str) -> Callable[[_Command], _Command]:
    """Return the decorator for the option -p, whose value is numbers of partitions."""
    return click.option(
        "-p", "--partitions", multiple=True, callback=_parse_partitions, metavar="N,…", help=help
    )


range_options: Final = option_group(
    click.option(
        "--from", "begin", type=PositionType(), metavar="POSITION", help="Start here.  [default: earliest]"
    ),
    click.option(
        "--until", "end", type=PositionType(), metavar="POSITION", help="Stop before this position."
    ),
    partitions_option("Read only these."),
)


def consumer_settings(settings: Settings, command: str, group: str | None) -> Settings:
    """Return the settings of a command's consumer, which commits only what the command asks for."""
    overrides = {
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "group.id": group or _UNUSED_GROUP,
    }
    earliest = settings.with_defaults(f"defaults of {command}", {"auto.offset.reset": "earliest"})
    return earliest.with_overrides(f"overrides of {command}", overrides)


def resolve_offset(position: Position, watermarks: tuple[int, int], known: int | None) -> int:
    """Return the offset of a position in a partition, limited to its watermarks.

    The watermarks are the first offset, and the offset after the last. ``known`` is the broker's
    answer for a time or for the stored offset of a group. None is the end of the partition for a time
    (all records are older), and its start for a group without an offset.
    """
    low, high = watermarks
    offset = {
        "earliest": low,
        "latest": high,
        "offset": position.number,
        "last": high - position.number,
        "time": high if known is None else known,
        "stored": low if known is None else known,
    }[position.kind]
    return max(low, min(offset, high))


def check_partitions(topic: str, wanted: Iterable[int], existing: Sequence[int]) -> None:
    """Raise `BadUsage` if a topic does not have one of the wanted partitions."""
    missing = sorted(set(wanted) - set(existing))
    if missing:
        last = max(existing, default=0)
        known = f"partitions 0 to {last}" if last else "partition 0"
        raise BadUsage(f"topic {topic!r} has no partition {missing[0]}; it has {known}")


# --- reading ---


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A topic, its partitions (all if empty), and the positions to read between.

    Without ``begin``, reading starts at the offsets of the group, or at the start.
    """

    topic: str
    partitions: tuple[int, ...]
    begin: Position | None
    end: Position | None
    follow: bool
    group: str | None


def check_request(request: ReadRequest) -> None:
    """Raise `BadUsage` for the position of a group without a group, and for two ends."""
    if request.follow and request.end is not None:
        raise BadUsage("--follow and --until exclude each other")
    if Position("stored") in (request.begin, request.end) and not request.group:
        raise BadUsage("'stored' is the offset of a group: pass --group, too")


class RangeReader:
    """A reader of the records of a request, in batches."""

    def __init__(self, consumer: Consumer, session: BrokerSession, request: ReadRequest) -> None:
        self._consumer = consumer
        self._session = session
        self._request = request
        self._begin = request.begin or Position("stored" if request.group else "earliest")
        # The offset that the user asked for, which may not exist yet.
        self._first = self._begin.number if self._begin.kind == "offset" else 0
        # The offset before which reading ends, by partition; None is endless.
        self._stops: dict[int, int | None] = {}

    def start(self) -> None:
        """Look up the offsets to read and assign the partitions."""
        existing = self._session.partitions(self._consumer, self._request.topic)
        check_partitions(self._request.topic, self._request.partitions, existing)
        with self._session.client_errors():
            partitions = self._request.partitions or existing
            watermarks = {number: self._watermarks(number) for number in partitions}
            starts = self._resolve(self._begin, watermarks)
            if self._request.follow:
                self._stops = dict.fromkeys(starts)
            else:
                stops = self._resolve(self._request.end or Position("latest"), watermarks)
                self._stops = {number: stop for number, stop in stops.items() if starts[number] < stop}
            self._consumer.assign([self._partition(number, starts[number]) for number in self._stops])

    def batches(self) -> Iterator[list[Record]]:
        """Yield batches of records until all ranges are read; with ``follow``, forever.

        Raises `BrokerFailure` if the broker does not answer within the timeout, and `Interrupted`.
        """
        last_answer = time.monotonic()
        while self._stops:
            self._session.check()
            with self._session.client_errors():
                messages = self._consumer.consume(_BATCH, _BATCH_SECONDS)
            records = [record for message in messages if (record := self._record(message)) is not None]
            if records:
                yield records
            if messages:
                self._session.mark_connected()
                last_answer = time.monotonic()  # after the yield: the caller may be slow
            elif not self._request.follow and time.monotonic() - last_answer > self._session.timeout:
                raise self._session.no_answer()

    def commit(self, offsets: dict[int, int]) -> None:
        """Commit the next offset of each partition for the group, and wait for the broker."""
        with self._session.client_errors():
            partitions = [self._partition(number, offset) for number, offset in offsets.items()]
            for partition in self._consumer.commit(offsets=partitions, asynchronous=False) or ():
                if partition.error is not None:
                    what = f"did not store the offsets of group {self._request.group!r}"
                    raise self._session.failure(what, partition.error)

    def _record(self, message: Any) -> Record | None:
        """Return the record of a message; None for an event of the client or outside the range."""
        error = message.error()
        if error is not None:
            self._handle_error(error, message.partition())
            return None
        partition, offset = message.partition(), message.offset()
        if partition not in self._stops:
            return None  # fetched before its partition was finished
        stop = self._stops[partition]
        if stop is not None and offset >= stop - 1:
            self._finish(partition)
            if offset >= stop:
                return None
        return Record.of(message) if offset >= self._first else None

    def _handle_error(self, error: Any, partition: int) -> None:
        if error.name() == "_PARTITION_EOF":
            if self._stops.get(partition) is not None:
                self._finish(partition)
        elif error.name() == "GROUP_AUTHORIZATION_FAILED" and self._request.group is None:
            pass  # the client looks up the group of its settings, which is not used
        elif not is_transient(error):
            raise self._session.topic_error(error, self._request.topic)

    def _finish(self, partition: int) -> None:
        del self._stops[partition]
        with self._session.client_errors():
            self._consumer.pause([self._partition(partition)])

    # --- offsets to read ---

    def _watermarks(self, number: int) -> tuple[int, int]:
        self._session.check()
        partition, timeout = self._partition(number), self._session.timeout
        low, high = self._consumer.get_watermark_offsets(partition, timeout=timeout, cached=False)
        return low, high

    def _resolve(self, position: Position, watermarks: dict[int, tuple[int, int]]) -> dict[int, int]:
        known = self._look_up(position, list(watermarks))
        return {n: resolve_offset(position, marks, known.get(n)) for n, marks in watermarks.items()}

    def _look_up(self, position: Position, numbers: Sequence[int]) -> dict[int, int]:
        """Return the broker's offset for a time or of the group, for each partition that has one."""
        timeout = self._session.timeout
        if position.kind == "time":
            times = [self._partition(number, position.number) for number in numbers]
            answers = self._consumer.offsets_for_times(times, timeout=timeout)
        elif position.kind == "stored":
            answers = self._consumer.committed(
                [self._partition(number) for number in numbers], timeout=timeout
            )
        else:
            return {}
        for answer in answers:
            if answer.error is not None:
                raise self._session.failure("failed", answer.error)
        return {answer.partition: answer.offset for answer in answers if answer.offset >= 0}

    def _partition(self, number: int, offset: int | None = None) -> TopicPartition:
        from confluent_kafka import OFFSET_INVALID, TopicPartition

        return TopicPartition(self._request.topic, number, OFFSET_INVALID if offset is None else offset)
