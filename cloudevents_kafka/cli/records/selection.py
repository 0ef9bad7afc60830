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
"""The verdicts on records that are not valid events."""
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
"""The options to use for names that are not attribute names."""


class AttributeType(PairType):
    """The type of parameters ``name=value`` for attributes; the error for a wrong name suggests an option."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Return the name and the value."""
        name, text = super().convert(value, param, ctx)
        if not is_name(name) or name in _OF_RECORDS:
            problem = f"NAME must be an attribute of events, got {name!r}; {_advice(name, text)}"
            self.fail(problem, param, ctx)
        return name, text


def _advice(name: str, text: str) -> str:
    """Return the option to use for a name that is not an attribute name."""
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
    """A filter: a record must meet all conditions.

    The options in `filter_options` have the same names as the fields of this class. ``types``, ``sources``,
    ``subjects``, ``keys`` and ``values`` are lists of globs. In each list that is not empty, at least one
    glob must match. ``where`` contains pairs of an attribute name and the attribute's exact text. ``headers``
    contains pairs of a header name and a value, where None matches any value. ``verdicts`` contains some of
    `VERDICTS`. If ``verdicts`` is not empty, the record must have one of these verdicts.
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
        """Whether only events can match, because a condition applies to attributes."""
        return bool(self.types or self.sources or self.subjects or self.where)

    def matches(self, item: Decoded | Undecodable) -> bool:
        """Return whether a record meets all conditions."""
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
    """Return whether a key or a value matches one of the globs; null does not match any glob."""
    if not globs or value is None:
        return not globs
    text = value.decode("utf-8", "surrogateescape")
    return any(fnmatchcase(text, glob) for glob in globs)


class RecordWriter:
    """Writes up to ``count`` records that match a filter; ``written`` is the number of written records.

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
        """Write a record if it matches, and return whether the command continues with the next record."""
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
        """Report skipped records, and records that --lenient would read; with ``strict``, raise the error."""
        if self._readable:
            refused = pluralize(self._refused, "record that is not an event", "records that are not events")
            print_message(f"--lenient would read {self._readable:,} of {refused}")
        if self._skipped:
            skipped = pluralize(self._skipped, "record that is not an event", "records that are not events")
            print_message(f"the filters skipped {skipped}")
        if self._error:
            raise self._error
