"""Explain a record: what it was taken for and why, and every rule that it breaks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from cloudevents_kafka.attributes.extension_types import type_of
from cloudevents_kafka.attributes.types import CORE, AttributeType
from cloudevents_kafka.binding import Decoded, Undecodable, Verdict, decode, sniff
from cloudevents_kafka.clauses import SECTIONS
from cloudevents_kafka.cli.records.json_lines import error_members, event_members, written
from cloudevents_kafka.cli.records.text import (
    BAD,
    DIM,
    NOTE,
    TYPE,
    Line,
    bytes_text,
    data_text,
    head,
    header_lines,
    row,
)
from cloudevents_kafka.cli.terminal.escape import visible
from cloudevents_kafka.errors import Problem
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions import size_problem, unmet_recommendations
from cloudevents_kafka.record import Record

_TYPES = {bool: AttributeType.BOOLEAN, int: AttributeType.INTEGER, bytes: AttributeType.BINARY}


class Explanation(msgspec.Struct, frozen=True):
    """What is to be told of a record: the sniffer's word, and how it reads, strictly and leniently."""

    record: Record
    sniffed: Verdict
    strict: Decoded | Undecodable
    lenient: Decoded | Undecodable

    @property
    def verdict(self) -> str:
        """The word for what the record is."""
        return "event" if isinstance(self.strict, Decoded) else self.strict.error.verdict

    @property
    def is_event(self) -> bool:
        """Whether the record is an event that keeps all rules."""
        return isinstance(self.strict, Decoded)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every rule that the record breaks, where it is an event that does."""
        return self.strict.error.problems if isinstance(self.strict, Undecodable) else ()

    @property
    def advice(self) -> list[Problem]:
        """What an event does otherwise than the documents recommend."""
        large = size_problem(self.record)
        advice = unmet_recommendations(self.strict.event) if isinstance(self.strict, Decoded) else []
        return advice if large is None else [*advice, large]


def explain(record: Record) -> Explanation:
    """Read a record in every way there is; total."""
    return Explanation(record, sniff(record.headers), decode(record), decode(record, lenient=True))


def type_name(event: Event, name: str) -> str:
    """Name an attribute's type: the known one, else that of its value."""
    known = type_of(name)
    if name in CORE or known is not AttributeType.STRING:
        return known.value
    return _TYPES.get(type(event[name]), known).value


# --- as JSON -------------------------------------------------------------------


def members(told: Explanation) -> dict[str, Any]:
    """Lay out an explanation as a JSON object."""
    found: dict[str, Any] = {"verdict": told.verdict}
    if told.record.where:
        found["record"] = told.record.where
    sniffed = {
        "mode": told.sniffed.mode,
        "format": told.sniffed.format,
        "content-type": told.sniffed.media_type,
    }
    found["sniffed"] = {**sniffed, "reason": told.sniffed.reason}
    if isinstance(told.strict, Decoded):
        found |= _event_members(told.strict.event)
        if told.advice:
            found["advice"] = problem_members(told.advice)
    else:
        found["error"] = error_members(told.strict.error)
        found["problems"] = problem_members(told.problems)
        found["lenient"] = _lenient_members(told.lenient)
    found["key"] = written(told.record.key)
    return found


def _event_members(event: Event) -> dict[str, Any]:
    types = {name: type_name(event, name) for name in event}
    return {"event": event_members(event), "types": types}


def _lenient_members(item: Decoded | Undecodable) -> dict[str, Any]:
    if isinstance(item, Undecodable):
        return {"verdict": item.error.verdict, "error": error_members(item.error)}
    return {"verdict": "event", "tolerated": problem_members(item.tolerated)} | _event_members(item.event)


def problem_members(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Lay out problems as JSON objects, each with its clause and where that stands."""
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


def lines(told: Explanation) -> list[Line]:
    """Lay out an explanation as text."""
    laid = [head(told.record), row("verdict", told.verdict, TYPE if told.is_event else BAD)]
    if told.sniffed.mode in ("binary", "structured"):
        laid.append(row("taken as", _taken_as(told.sniffed), ""))
        laid.append(row("because", visible(told.sniffed.reason), ""))
    if isinstance(told.strict, Decoded):
        laid += _event_lines(told.strict.event)
        laid += _problem_lines("advice", told.advice, NOTE)
        laid += header_lines(told.record, foreign=True)
        return laid
    error = told.strict.error
    laid += _problem_lines("problem", told.problems) or [row("because", visible(error.reason), BAD)]
    if error.hint:
        laid.append(row("hint", visible(error.hint), NOTE))
    laid += header_lines(told.record, foreign=False)
    laid.append(row("value", bytes_text(told.record.value), ""))
    return laid + _lenient_lines(told.lenient)


def _taken_as(sniffed: Verdict) -> str:
    return f"structured, format {sniffed.format}" if sniffed.mode == "structured" else sniffed.mode


def _event_lines(event: Event) -> list[Line]:
    laid: list[Line] = [
        [*row(name, "", ""), (f"{type_name(event, name):<15}", DIM), (visible(str(event.text(name))), "")]
        for name in event
    ]
    if event.payload is not None:
        laid.append(
            [*row("data", "", ""), (f"{f'{len(event.payload)} bytes':<15}", DIM), (data_text(event), "")]
        )
    return laid


def _problem_lines(name: str, problems: Iterable[Problem], style: str = BAD) -> list[Line]:
    return [row(name, visible(str(problem)), style) for problem in problems]


def _lenient_lines(item: Decoded | Undecodable) -> list[Line]:
    if isinstance(item, Undecodable):
        return [row("leniently", f"{item.error.verdict} too", "")]
    laid = [row("leniently", "an event, letting pass:", TYPE)]
    return laid + _problem_lines("", item.tolerated, NOTE) + _event_lines(item.event)
