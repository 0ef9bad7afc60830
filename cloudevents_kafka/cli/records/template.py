"""Templates for lines about records, in Python's format syntax, such as ``{offset:>8} {type} {data}``.

A field is one of `FIELDS`, a core attribute, or ``ce_`` followed by the name of any attribute, as in the name
of a header. Fields are looked up only by name: a template is not a program, and cannot access attributes of
Python objects. The format after the colon in ``{offset:>8}`` must not contain another field, and its width
and precision are limited. Therefore, a line is not much longer than the template and the values of the
fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from typing import Any, Final

from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.cli.records.output import bytes_text, timestamp_text
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.text import near
from cloudevents_kafka.errors import NotAnEvent
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.record import Record

Item = Decoded | Undecodable
_Field = Callable[[Item], Any]
_ATTRIBUTE: Final = re.compile("ce_[a-z0-9]+")


def _of_error(name: str) -> _Field:
    return lambda item: getattr(item.error, name) if isinstance(item, Undecodable) else ""


FIELDS: Final[dict[str, _Field]] = {
    "topic": lambda item: item.record.topic,
    "partition": lambda item: item.record.partition,
    "offset": lambda item: item.record.offset,
    "place": lambda item: item.record.where,
    "timestamp": lambda item: None if (at := item.record.timestamp) is None else timestamp_text(at),
    "key": lambda item: bytes_text(item.record.key),
    "value": lambda item: bytes_text(item.record.value),
    "headers": lambda item: ",".join(f"{name}={bytes_text(value)}" for name, value in item.record.headers),
    "mode": lambda item: item.mode if isinstance(item, Decoded) else None,
    "verdict": lambda item: item.error.verdict if isinstance(item, Undecodable) else "event",
    "reason": _of_error("reason"),
    "clauses": lambda item: ",".join(item.error.clauses) if isinstance(item, Undecodable) else "",
}


LINE: Final = "{place}  {timestamp}  {type}  {source}  {id}  {data}"
"""The template that ``-o line`` uses for events."""
LINE_OF_OTHERS: Final = "{place}  {timestamp}  {verdict}  {reason}"
_NAMES: Final = ("data", *FIELDS, *CORE)
_LISTED: Final = f"{', '.join(_NAMES)}, or ce_ATTRIBUTE"
_MOST: Final = 1_000  # columns or digits of a field
_DIGITS: Final = re.compile(r"\d+")
_VERBS: Final = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "k": "key",
    "v": "value",
    "s": "value",
    "h": "headers",
    "d": "timestamp",
    "T": "timestamp",
}
"""The format codes of the programs kcat and rpk, which some users try first, and the corresponding fields."""
_VERB: Final = re.compile(f"%([{''.join(_VERBS)}])")
_SAMPLE: Final = Record(topic="orders", partition=0, offset=0)


class Template:
    """A template for lines; the function ``data`` returns the text of an event's data.

    Raises `BadUsage` for an invalid template.
    """

    def __init__(self, text: str, data: Callable[[Decoded], str]) -> None:
        self._text, self._data = text.replace("\\t", "\t").replace("\\n", "\n"), data
        try:
            parts = [part for part in Formatter().parse(self._text) if part[1] is not None]
            values = _Values(Undecodable(NotAnEvent("", record=_SAMPLE), _SAMPLE), data)
            _check(
                text, [(name or "", spec or "", conversion) for _, name, spec, conversion in parts], values
            )
            self._text.format_map(values)
        except ValueError as error:
            raise BadUsage(f"--format: {error}") from None

    def render(self, item: Item) -> str:
        """Return the line for a record."""
        return self._text.format_map(_Values(item, self._data))


def _check(text: str, fields: Sequence[tuple[str, str, str | None]], values: Mapping[str, Any]) -> None:
    """Raise `ValueError` for a template without fields, with an unknown field, or with a wrong format."""
    if not fields:
        verbs = _VERB.sub(lambda verb: f"{{{_VERBS[verb[1]]}}}", text)
        line = verbs.removesuffix("\\n")  # each record is on a separate line anyway
        advice = f"write {line!r}; " if verbs != text else ""
        raise ValueError(
            f"a template must have a field in braces, such as {{offset}}, got {text!r}; {advice}"
            f"the fields are {_LISTED}"
        )
    for name, spec, conversion in fields:
        _check_field(name)
        _check_format(name, spec, "" if conversion else values[name])


def _check_field(name: str) -> None:
    if name not in _NAMES and not _ATTRIBUTE.fullmatch(name):
        advice = near(name, _NAMES) or f"; it must be one of {_LISTED}"
        raise ValueError(f"{name!r} is not a field{advice}")


def _check_format(name: str, spec: str, value: object) -> None:
    """Raise `ValueError` for a format that does not suit the value, is too wide, or has the type ``c``."""
    if "{" in spec or "}" in spec:
        raise ValueError(f"the format of {name!r} must not have a field in it, got {spec!r}; write a number")
    long = [digits for digits in _DIGITS.findall(spec) if len(digits) > 9 or int(digits) > _MOST]
    if long:
        raise ValueError(f"a width or precision must be at most {_MOST:,}, got {long[0][:20]} for {name!r}")
    if spec.endswith("c"):
        raise ValueError(f"the format of {name!r} must be for numbers or text, got {spec!r}; leave out c")
    try:
        format(value, spec)
    except ValueError:
        kind = "numbers, such as 08d" if isinstance(value, int) else "text, such as >20"
        raise ValueError(f"the format of {name!r} must be for {kind}, got {spec!r}") from None


class _Values(dict[str, Any]):
    """The values of a record's fields, which are computed when they are used: numbers, or escaped text."""

    def __init__(self, item: Item, data: Callable[[Decoded], str]) -> None:
        super().__init__()
        self._item, self._data = item, data

    def __missing__(self, name: str) -> Any:
        if name in FIELDS:
            value = FIELDS[name](self._item)
        elif not isinstance(self._item, Decoded):
            value = None
        else:
            event = self._item.event
            value = self._data(self._item) if name == "data" else event.text(name.removeprefix("ce_"))
        return value if isinstance(value, int) else escape("" if value is None else str(value))
