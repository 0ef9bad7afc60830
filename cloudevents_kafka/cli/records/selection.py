"""The filters of commands, and the writer for the records that match the filters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.attributes.types import is_name
from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.cli.records.reading import event_of, read
from cloudevents_kafka.cli.records.writing import Output
from cloudevents_kafka.cli.terminal.errors import BadData
from cloudevents_kafka.cli.terminal.parameters import TEXT, PairType, header_option, option_group
from cloudevents_kafka.cli.terminal.text import print_message
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

ERRORS: Final = ("not-an-event", "broken-event", "broken-data", "unsupported-format", "batch")
"""The verdicts of records that are not valid events."""
VERDICTS: Final = ("event", "any-error", *ERRORS)

_OF_RECORDS: Final = {
    "key": "--key GLOB",
    "value": "--value GLOB",
    "data": "--value GLOB, or filter the JSON lines of consume, as by jq 'select(.event.data.total > 10)'",
    "topic": "-t TOPIC",
    "partition": "-p N",
    "offset": "--from N and --until N",
    "timestamp": "--from @TIME and --until @TIME",
    **dict.fromkeys(("header", "headers"), "--header NAME=VALUE"),
    "verdict": "--verdict VERDICT",
}
"""The options to use instead of names that are not names of attributes."""


class AttributeType(PairType):
    """The type of parameters ``name=value`` for attributes.

    The error for a wrong attribute name suggests an option.
    """

    def __init__(self) -> None:
        super().__init__(TEXT)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Return the name and the value of the attribute."""
        name, text = super().convert(value, param, ctx)
        if not is_name(name) or name in _OF_RECORDS:
            problem = f"NAME must be an attribute of events, got {name!r}; {_advice(name, text)}"
            self.fail(problem, param, ctx)
        return name, text


def _advice(name: str, text: str) -> str:
    """Return the option to use instead, for a name that is not the name of an attribute."""
    first = re.split(r"[.\[]", name, maxsplit=1)[0]
    attribute = name.lower().removeprefix("ce_").removeprefix("ce-")
    if first in _OF_RECORDS or first != name:  # a path, such as one into the data
        return f"pass {_OF_RECORDS.get(first, _OF_RECORDS['data'])}"
    if is_name(attribute) and attribute not in _OF_RECORDS:
        return f"write {attribute}={text}"
    return "to choose by a header, pass --header NAME=VALUE"


filter_options: Final = option_group(
    click.option("--type", "types", multiple=True, metavar="GLOB", help="Only events whose type matches."),
    click.option(
        "--source", "sources", multiple=True, metavar="GLOB", help="Only events whose source matches."
    ),
    click.option(
        "--subject", "subjects", multiple=True, metavar="GLOB", help="Only events whose subject matches."
    ),
    click.option(
        "--where",
        multiple=True,
        type=AttributeType(),
        metavar="NAME=VALUE",
        help="Only events with this attribute. Repeatable: all must match.",
    ),
    click.option(
        "-k",
        "--key",
        "keys",
        multiple=True,
        metavar="GLOB",
        help="Only records whose key matches, if the key is read as text.",
    ),
    click.option(
        "--value",
        "values",
        multiple=True,
        metavar="GLOB",
        help="Only records whose value matches, if the value is read as text.",
    ),
    header_option("Only records with this header. Repeatable: all must match."),
    click.option(
        "--verdict",
        "verdicts",
        multiple=True,
        type=click.Choice(VERDICTS),
        metavar="VERDICT",
        help=f"Only records with this verdict: {', '.join(VERDICTS)}; any-error is every verdict except "
        "event. Repeatable.",
    ),
)


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of a filter; a record must meet all of these conditions.

    The fields of this class have the same names as the options in `filter_options`. ``types``, ``sources``,
    ``subjects``, ``keys`` and ``values`` are lists of globs. At least one glob of each non-empty list must
    match. ``where`` contains pairs: the name of an attribute, and the exact text of its value. ``headers``
    contains pairs: the name of a header, and its value; None stands for any value. ``verdicts`` contains some
    of the names in `VERDICTS`. If ``verdicts`` is not empty, the record must have one of these verdicts.
    """

    types: Sequence[str] = ()
    sources: Sequence[str] = ()
    subjects: Sequence[str] = ()
    where: Sequence[tuple[str, str]] = ()
    keys: Sequence[str] = ()
    values: Sequence[str] = ()
    headers: Sequence[tuple[str, bytes | None]] = ()
    verdicts: Sequence[str] = ()

    @property
    def needs_event(self) -> bool:
        """Whether only events can match the filter, because a condition applies to attributes."""
        return bool(self.types or self.sources or self.subjects or self.where)

    def matches(self, item: Decoded | Undecodable) -> bool:
        """Return whether a record meets all conditions of the filter."""
        verdict = ("event",) if isinstance(item, Decoded) else ("any-error", item.error.verdict)
        if self.verdicts and not set(verdict) & set(self.verdicts):
            return False
        record, found = item.record, item.record.headers
        if not (_matches_bytes(record.key, self.keys) and _matches_bytes(record.value, self.values)):
            return False
        if not all(any(n == name and value in (None, v) for n, v in found) for name, value in self.headers):
            return False
        event = event_of(item)
        return not self.needs_event or (event is not None and self._matches_event(event))

    def _matches_event(self, event: Event) -> bool:
        globs = {"type": self.types, "source": self.sources, "subject": self.subjects}
        return all(event.text(name) == value for name, value in self.where) and all(
            (text := event.text(name)) is not None and any(fnmatchcase(text, glob) for glob in patterns)
            for name, patterns in globs.items()
            if patterns
        )


def _matches_bytes(value: bytes | None, globs: Sequence[str]) -> bool:
    """Return whether a key or a value matches one of the globs; a null key or value matches no glob."""
    if not globs or value is None:
        return not globs
    text = value.decode("utf-8", "surrogateescape")
    return any(fnmatchcase(text, glob) for glob in globs)


class RecordWriter:
    """Writes up to ``count`` records that match a filter; ``written`` says how many records were written.

    With ``strict``, writing ends at the first record that is not an event or has broken data.
    """

    def __init__(
        self, output: Output, filter: Filter, *, count: int | None, lenient: bool, strict: bool
    ) -> None:
        self._read = partial(read, lenient=lenient, by_registry=output.has_registry)
        self._output = output
        self._filter = filter
        self._count = count
        self._lenient = lenient
        self._strict = strict
        self._skipped = self._refused = self._readable = 0
        self._error: BadData | None = None
        self.written = 0

    def write(self, batches: Iterator[list[Record]]) -> Iterator[Mapping[tuple[str, int], int]]:
        """Write each batch, flush the output, and yield the next offset of each partition in the batch."""
        for batch in batches:
            offsets: dict[tuple[str, int], int] = {}
            for record in batch:
                if self.written == self._count or not self._write_item(self._read(record)):
                    break
                if record.partition is not None and record.offset is not None:
                    offsets[record.topic or "", record.partition] = record.offset + 1
            self._output.flush()
            yield offsets
            if self.written == self._count or self._error:
                return

    def _write_item(self, item: Decoded | Undecodable) -> bool:
        """Write a record if it matches the filter; return whether the command continues."""
        if isinstance(item, Undecodable):
            if self._strict:
                self._error = BadData(f"{item.error}; to read on, leave out --strict")
                return False
            self._skipped += self._filter.needs_event and event_of(item) is None
            self._refused += 1
            self._readable += not self._lenient and isinstance(read(item.record, lenient=True), Decoded)
        if self._filter.matches(item):
            self._output.write(item)
            self.written += 1
        return True

    def finish(self) -> None:
        """Report how many records were skipped, and how many --lenient would read.

        With ``strict``, raise the error of the record at which writing has ended.
        """
        if self._readable:
            refused = pluralize(self._refused, "record that is not an event", "records that are not events")
            print_message(f"--lenient would read {self._readable:,} of {refused}")
        if self._skipped:
            skipped = pluralize(self._skipped, "record that is not an event", "records that are not events")
            print_message(f"the filters skipped {skipped}")
        if self._error:
            raise self._error
