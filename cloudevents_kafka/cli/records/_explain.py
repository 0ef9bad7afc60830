"""Explain a record: its content mode and the reason, and every rule that it breaks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import CORE, AttributeType
from cloudevents_kafka.binding import Decoded, Undecodable, Verdict, decode, sniff
from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.cli.records._json_lines import bytes_to_json, error_object, event_json
from cloudevents_kafka.cli.records._text import (
    Style,
    StyledLine,
    bytes_text,
    data_text,
    header_lines,
    mode_text,
    record_heading,
    row,
)
from cloudevents_kafka.cli.terminal import escape
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import size_problem, unmet_recommendations
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.record import Record

_TYPES = {bool: AttributeType.BOOLEAN, int: AttributeType.INTEGER, bytes: AttributeType.BINARY}
_TYPE_WIDTH = len("URI-reference") + 2


class Explanation(msgspec.Struct, frozen=True):
    """A record, its content mode, and the results of strict and lenient decoding."""

    record: Record
    sniffed: Verdict
    strict: Decoded | Undecodable
    lenient: Decoded | Undecodable

    @property
    def verdict(self) -> str:
        """``event``, or the verdict of the error."""
        return "event" if isinstance(self.strict, Decoded) else self.strict.error.verdict

    @property
    def is_event(self) -> bool:
        """Whether the record is an event that keeps all rules."""
        return isinstance(self.strict, Decoded)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every rule that a broken event breaks; empty for other records."""
        return self.strict.error.problems if isinstance(self.strict, Undecodable) else ()

    @property
    def advice(self) -> list[Problem]:
        """The recommendations of the specification that an event does not follow."""
        large = size_problem(self.record)
        advice = unmet_recommendations(self.strict.event) if isinstance(self.strict, Decoded) else []
        return advice if large is None else [*advice, large]


def explain(record: Record) -> Explanation:
    """Return the explanation of a record; raises no error for any record."""
    return Explanation(record, sniff(record.headers), decode(record), decode(record, lenient=True))


def _type_name(event: Event, name: str) -> str:
    """Return the name of an attribute's type: the registered one, else that of its value."""
    known = type_of(name)
    if name in CORE or known is not AttributeType.STRING:
        return known.value
    return _TYPES.get(type(event[name]), known).value


# --- as JSON -------------------------------------------------------------------


def explanation_object(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as a JSON object."""
    result: dict[str, Any] = {"verdict": explanation.verdict}
    if explanation.record.where:
        result["record"] = explanation.record.where
    sniffed = explanation.sniffed
    result["sniffed"] = {
        "mode": sniffed.mode,
        "format": sniffed.format,
        "content-type": sniffed.media_type,
        "reason": sniffed.reason,
    }
    if isinstance(explanation.strict, Decoded):
        result |= _event_members(explanation.strict.event)
        if explanation.advice:
            result["advice"] = _problem_objects(explanation.advice)
    else:
        result["error"] = error_object(explanation.strict.error)
        result["problems"] = _problem_objects(explanation.problems)
        result["lenient"] = _lenient_object(explanation.lenient)
    result["key"] = bytes_to_json(explanation.record.key)
    return result


def _event_members(event: Event) -> dict[str, Any]:
    return {"event": event_json(event), "types": {name: _type_name(event, name) for name in event}}


def _lenient_object(item: Decoded | Undecodable) -> dict[str, Any]:
    if isinstance(item, Undecodable):
        return {"verdict": item.error.verdict, "error": error_object(item.error)}
    return {"verdict": "event", "tolerated": _problem_objects(item.tolerated)} | _event_members(item.event)


def _problem_objects(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    return [
        {
            "attribute": problem.attribute,
            "rule": problem.rule,
            "seen": problem.value,
            "clause": problem.clause,
            "section": SECTIONS[problem.clause],
        }
        for problem in problems
    ]


# --- as text -------------------------------------------------------------------


def explanation_lines(explanation: Explanation) -> list[StyledLine]:
    """Return an explanation as lines of text."""
    record, strict = explanation.record, explanation.strict
    verdict_style = Style.GOOD if explanation.is_event else Style.ERROR
    lines = [record_heading(record), row("verdict", explanation.verdict, verdict_style)]
    if explanation.sniffed.mode in ("binary", "structured"):
        lines.append(row("mode", mode_text(explanation.sniffed)))
        lines.append(row("because", escape(explanation.sniffed.reason)))
    if isinstance(strict, Decoded):
        lines += _event_lines(strict.event)
        lines += _problem_lines("advice", explanation.advice, Style.WARNING)
        lines += header_lines(record, extra_only=True)
        return lines
    lines += _problem_lines("problem", explanation.problems) or [
        row("because", escape(strict.error.reason), Style.ERROR)
    ]
    if strict.error.hint:
        lines.append(row("hint", escape(strict.error.hint), Style.WARNING))
    lines += header_lines(record, extra_only=False)
    lines.append(row("value", bytes_text(record.value)))
    return lines + _lenient_lines(explanation.lenient)


def _event_lines(event: Event) -> list[StyledLine]:
    lines = [_typed_row(name, _type_name(event, name), escape(str(event.text(name)))) for name in event]
    if event.payload is not None:
        lines.append(_typed_row("data", pluralize(len(event.payload), "byte"), data_text(event)))
    return lines


def _typed_row(name: str, type_name: str, text: str) -> StyledLine:
    return [*row(name, ""), (f"{type_name:<{_TYPE_WIDTH}}", Style.DIM), (text, Style.PLAIN)]


def _problem_lines(name: str, problems: Iterable[Problem], style: str = Style.ERROR) -> list[StyledLine]:
    return [row(name, escape(str(problem)), style) for problem in problems]


def _lenient_lines(item: Decoded | Undecodable) -> list[StyledLine]:
    if isinstance(item, Undecodable):
        return [row("lenient", f"also {item.error.verdict}")]
    lines = [row("lenient", "an event, tolerating:", Style.GOOD)]
    return lines + _problem_lines("", item.tolerated, Style.WARNING) + _event_lines(item.event)
