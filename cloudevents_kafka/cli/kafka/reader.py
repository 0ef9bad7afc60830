"""Read a range of offsets from topics; the range lies between two positions, such as ``-10`` or ``@time``.

The end offset of each partition is looked up once, at the start. A partition is finished when its last offset
has been read, or when the client reports the end of the partition. The client's report is needed because the
last offsets do not always belong to records, for example after a transaction or a compaction.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
import msgspec
from click.shell_completion import CompletionItem

from cloudevents_kafka.cli.kafka.cluster import Partition
from cloudevents_kafka.cli.kafka.session import BrokerSession, is_transient
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.kafka.topic_names import choose_topics
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.parameters import option_group
from cloudevents_kafka.cli.terminal.text import print_message
from cloudevents_kafka.positions import NAMED, Position, parse_position
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_Command = TypeVar("_Command", bound=Callable[..., Any])
_UNUSED_GROUP: Final = "cloudevents-kafka-cli"  # the client requires a group.id
_TIMES: Final = 10**12  # milliseconds since the epoch in 2001: such an offset may be a time without its @
_LOOK_UP_SECONDS: Final = 60.0  # between two look-ups of added partitions
_BATCH: Final = 500
_BATCH_SECONDS: Final = 0.1  # the time to collect a batch, and the longest delay with --follow


class PositionType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """The type of command-line parameters whose value is a `Position` in a partition.

    The position ``stored`` is allowed only if the argument ``stored`` is True.
    """

    name = "position"

    def __init__(self, *, stored: bool = True) -> None:
        self._stored = stored

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Position:
        """Return the position that a text such as ``-10`` denotes."""
        if isinstance(value, Position):
            return value
        try:
            return parse_position(value, stored=self._stored)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's signature
        param: click.Parameter,  # noqa: ARG002  # the same
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names of positions that complete a text; numbers and times have no completions."""
        return [CompletionItem(name) for name in NAMED[: 2 + self._stored] if name.startswith(incomplete)]


def _parse_partitions(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    parts = [part.strip() for text in texts for part in text.split(",")]
    if wrong := [part for part in parts if not (part.isascii() and part.isdigit())]:
        message = f"partitions must be numbers from 0, separated by commas, got {wrong[0]!r}"
        raise click.BadParameter(message, ctx, param)
    return tuple(dict.fromkeys(map(int, parts)))


def partitions_option(help: str) -> Callable[[_Command], _Command]:
    """Return the decorator that adds the option -p, whose value is a list of partition numbers."""
    return click.option(
        "-p", "--partitions", multiple=True, callback=_parse_partitions, metavar="N,…", help=help
    )


range_options: Final = option_group(
    click.option(
        "--from",
        "begin",
        type=PositionType(),
        metavar="POSITION",
        help="Start at this position.  [default: earliest]",
    ),
    click.option(
        "--until", "end", type=PositionType(), metavar="POSITION", help="Stop before this position."
    ),
    partitions_option("Read only these partitions."),
)


def consumer_settings(settings: Settings, command: str, group: str | None) -> Settings:
    """Return the settings for a command's consumer, which does not commit offsets automatically."""
    overrides = {
        "enable.auto.commit": "false",
        "enable.partition.eof": "true",
        "group.id": group or _UNUSED_GROUP,
    }
    earliest = settings.with_defaults(f"defaults of {command}", {"auto.offset.reset": "earliest"})
    return earliest.with_overrides(f"overrides of {command}", overrides)


def resolve_offset(position: Position, watermarks: tuple[int, int], known: int | None) -> int:
    """Return the offset to which a position refers, limited to the partition's watermarks.

    The watermarks are the first offset of the partition, and the offset after its last record. If the
    position is a time, ``known`` is the offset that the broker has found for this time. If all records are
    older than the position's time, ``known`` is None, and the result is the end of the partition. If the
    position is the offset of a group, ``known`` is the offset that the group has committed. If the group has
    not committed an offset, ``known`` is None, and the result is the start of the partition.
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
    """Raise `BadUsage` if a wanted partition does not exist in a topic."""
    missing = sorted(set(wanted) - set(existing))
    if missing:
        last = max(existing, default=0)
        known = f"partitions 0 to {last}" if last else "partition 0"
        raise BadUsage(f"topic {topic!r} has no partition {missing[0]}; it has {known}")


# --- reading ---


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The topics and partitions to read, and the positions at which reading starts and ends.

    Without ``partitions``, all partitions of the topics are read. Without ``begin``, reading starts at the
    offsets that the group has committed. Without ``begin`` and without a group, reading starts at the first
    offset of each partition. ``topics`` may contain globs. In addition, all topics whose names match
    ``topic_pattern`` are read.
    """

    topics: tuple[str, ...]
    partitions: tuple[int, ...]
    begin: Position | None
    end: Position | None
    follow: bool
    group: str | None
    topic_pattern: re.Pattern[str] | None = None


def check_request(request: ReadRequest) -> None:
    """Raise `BadUsage` for ``stored`` without a group, ``follow`` with an end, or an end before the start."""
    begin, end = request.begin, request.end
    if request.follow and end is not None:
        raise BadUsage("--follow and --until exclude each other")
    if Position("stored") in (begin, end) and not request.group:
        raise BadUsage("'stored' is the offset of a group: pass --group, too")
    if begin is not None and end is not None and begin.is_after(end):
        raise BadUsage(f"--from must not be after --until, got {begin} and {end}; exchange them")


class RangeReader:
    """Reads the records that a `ReadRequest` asks for, and returns the records in batches."""

    def __init__(self, consumer: Consumer, session: BrokerSession, request: ReadRequest) -> None:
        self._consumer = consumer
        self._session = session
        self._request = request
        self._begin = request.begin or Position("stored" if request.group else "earliest")
        # The offset that the user asked for, even if it does not exist yet.
        self._first = self._begin.number if self._begin.kind == "offset" else 0
        # The offset before which reading ends, by topic and partition; None is endless.
        self._stops: dict[Partition, int | None] = {}
        self._looked_up = time.monotonic()
        self.topics: Sequence[str] = ()
        """The topics that are read; the method `start` sets them."""

    def start(self) -> None:
        """Look up the offsets at which reading starts and ends, and assign the partitions to the client."""
        self.topics, partitions = self._choose()
        with self._session.client_errors():
            watermarks = {partition: self._watermarks(partition) for partition in partitions}
            starts = self._resolve(self._begin, watermarks)
            self._report_late_start([high for _, high in watermarks.values()])
            if self._request.follow:
                self._stops = dict.fromkeys(starts)
            else:
                stops = self._resolve(self._request.end or Position("latest"), watermarks)
                self._stops = {one: stop for one, stop in stops.items() if starts[one] < stop}
            self._consumer.assign([_to_client(one, starts[one]) for one in self._stops])

    def _report_late_start(self, ends: Collection[int]) -> None:
        """Report on stderr that no partition has reached the offset at which reading starts."""
        end = max(ends, default=0)
        if self._first > end:
            advice = f"; for a time in milliseconds, write @{self._first}" if self._first >= _TIMES else ""
            print_message(
                f"no partition has reached the offset {self._first}: the highest end offset is {end}{advice}"
            )

    def assign_added(self) -> None:
        """From time to time, look for new partitions of the topics, and read them from their start."""
        if self._request.partitions or time.monotonic() - self._looked_up < _LOOK_UP_SECONDS:
            return
        self._looked_up = time.monotonic()
        with suppress(BrokerFailure), self._session.client_errors():  # a later look-up may succeed
            for topic in self.topics:
                cluster = self._session.metadata(self._consumer, topic)
                existing = cluster.topics[topic].partitions if cluster else ()
                added = [(topic, number) for number in existing if (topic, number) not in self._stops]
                self._stops.update(dict.fromkeys(added))
                self._consumer.incremental_assign([_to_client(one, 0) for one in added])

    def starts(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset at which reading starts in each partition in ``partitions``."""
        with self._session.client_errors():
            return self._resolve(self._begin, {one: self._watermarks(one) for one in partitions})

    def _choose(self) -> tuple[Sequence[str], list[Partition]]:
        """Return the topics to read, and their partitions."""
        wanted, chosen = self._request.partitions, list[Partition]()
        topics = choose_topics(
            self._session, self._consumer, self._request.topics, self._request.topic_pattern
        )
        for topic in topics:
            existing = self._session.partitions(self._consumer, topic)
            check_partitions(topic, wanted, existing)
            chosen += ((topic, number) for number in wanted or existing)
        return topics, chosen

    def batches(self) -> Iterator[list[Record]]:
        """Yield batches of records until the range of each partition has been read.

        With ``follow``, yield batches forever; a batch is empty if no record has arrived for a short time.
        Raises `BrokerFailure` if the broker does not answer within the timeout, and `Interrupted` after a
        signal.
        """
        last_answer = time.monotonic()
        while self._stops:
            self._session.check()
            with self._session.client_errors():
                messages = self._consumer.consume(_BATCH, _BATCH_SECONDS)
            records = [record for message in messages if (record := self._record(message)) is not None]
            if records or self._request.follow:
                yield records
            if messages:
                self._session.mark_connected()
                last_answer = time.monotonic()  # after the yield: the caller may be slow
            elif not self._request.follow and time.monotonic() - last_answer > self._session.timeout:
                raise self._session.no_answer()

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Commit the next offset of each partition for the group; wait for the broker's answer."""
        if not offsets:  # the client would try to commit offsets that it has stored, and fail
            return
        with self._session.client_errors():
            partitions = [_to_client(*item) for item in offsets.items()]
            for partition in self._consumer.commit(offsets=partitions, asynchronous=False) or ():
                if partition.error is not None:
                    what = f"did not store the offsets of group {self._request.group!r}"
                    raise self._session.failure(what, partition.error)

    def _record(self, message: Any) -> Record | None:
        """Return the record in a message, or None if it is an error or its offset is out of range."""
        error = message.error()
        partition, offset = (message.topic(), message.partition()), message.offset()
        if error is not None:
            self._handle_error(error, partition)
            return None
        if partition not in self._stops:
            return None  # fetched before its partition was finished
        stop = self._stops[partition]
        if stop is not None and offset >= stop - 1:
            self._finish(partition)
            if offset >= stop:
                return None
        return Record.of(message) if offset >= self._first else None

    def _handle_error(self, error: Any, partition: Partition) -> None:
        if error.name() == "_PARTITION_EOF":
            if self._stops.get(partition) is not None:
                self._finish(partition)
        elif error.name() == "GROUP_AUTHORIZATION_FAILED" and self._request.group is None:
            pass  # the client looks up the group of its settings, which is not used
        elif not is_transient(error):
            raise self._session.topic_error(error, partition[0] or ", ".join(self.topics))

    def _finish(self, partition: Partition) -> None:
        del self._stops[partition]
        with self._session.client_errors():
            self._consumer.pause([_to_client(partition)])

    # --- offsets to read ---

    def _watermarks(self, partition: Partition) -> tuple[int, int]:
        look_up = partial(self._consumer.get_watermark_offsets, _to_client(partition), cached=False)
        low, high = self._session.ask(self._consumer, look_up)
        return low, high

    def _resolve(
        self, position: Position, watermarks: Mapping[Partition, tuple[int, int]]
    ) -> dict[Partition, int]:
        known = self._look_up(position, watermarks)
        found = {one: resolve_offset(position, marks, known.get(one)) for one, marks in watermarks.items()}
        return self._last(position.number, found, watermarks) if position.kind == "last" else found

    def _last(
        self, number: int, found: dict[Partition, int], watermarks: Mapping[Partition, tuple[int, int]]
    ) -> dict[Partition, int]:
        """Return the start offset for reading the last ``number`` records of each partition.

        Some offsets do not belong to a record, because of transaction markers, aborted transactions or
        compaction. The method therefore counts the records at the last offsets, and then the records at
        earlier offsets, until there are enough records.
        """
        counts = Counter[Partition]()
        stops = {one: high for one, (_, high) in watermarks.items()}
        while left := {
            one: stop for one, stop in stops.items() if found[one] < stop and counts[one] < number
        }:
            counts.update(one for one, _ in self._places(found, left))
            for one in left:
                low, high = watermarks[one]
                if counts[one] < number:
                    found[one], stops[one] = max(low, found[one] - 2 * (high - found[one])), found[one]
        more = {one: count - number for one, count in counts.items() if count > number}
        for one, offset in self._places(found, {one: watermarks[one][1] for one in more}):
            if one in more:
                found[one], more[one] = offset + 1, more[one] - 1
                if not more[one]:
                    del more[one]
                    self._stops.pop(one, None)
        return found

    def _places(
        self, starts: Mapping[Partition, int], stops: Mapping[Partition, int]
    ) -> Iterator[tuple[Partition, int]]:
        """Yield the partition and offset of each record from ``starts`` up to ``stops``."""
        self._stops = dict(stops)
        self._consumer.assign([_to_client(one, starts[one]) for one in stops])
        for batch in self.batches():
            yield from (((record.topic or "", record.partition or 0), record.offset or 0) for record in batch)
        self._consumer.resume([_to_client(one) for one in stops])  # a partition that is read is paused

    def _look_up(self, position: Position, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Return the offsets for a time, or the group's committed offsets; omit partitions without one."""
        if position.kind == "time":
            times = [_to_client(partition, position.number) for partition in partitions]
            look_up = partial(self._consumer.offsets_for_times, times)
        elif position.kind == "stored":
            look_up = partial(self._consumer.committed, [_to_client(one) for one in partitions])
        else:
            return {}
        answers = self._session.ask(self._consumer, look_up)
        for answer in answers:
            if answer.error is not None:
                raise self._session.failure("failed", answer.error)
        return {(answer.topic, answer.partition): answer.offset for answer in answers if answer.offset >= 0}


def _to_client(partition: Partition, offset: int | None = None) -> TopicPartition:
    from confluent_kafka import OFFSET_INVALID, TopicPartition

    return TopicPartition(*partition, OFFSET_INVALID if offset is None else offset)
