"""The problems that lenient reading reports. The library's Java function reports the same texts."""

from __future__ import annotations

from typing import Final

import msgspec

from cloudevents_kafka.attributes.types import AttributeValue, canonical_text
from cloudevents_kafka.binding._headers import CONTENT_TYPE
from cloudevents_kafka.errors import LeftOut, Problem

LEFT_OUT: Final = ": left out"
"""The end of the rule's text if an attribute is left out of the event."""
NO_CONTENT_TYPE: Final = ("header is missing: the value was read as a JSON event", "K-09")
OTHER_CONTENT_TYPE: Final = ("does not name an event format: the value was read as a JSON event", "K-15")
COPY: Final = ("is in ce_datacontenttype", "K-04")
HEADER: Final = ("was read as ", "K-05")
"""The rule text and the clause for a misspelled header name; the exact name follows the text."""
MEMBER: Final = ("was read as ", "N-01")
"""The rule text and the clause for a misspelled name of a member, or of a header after ``ce_``.

The name of the attribute follows the text.
"""
QUOTED: Final = ("is in quotation marks", "K-06")
BARE_TYPE: Final = ("is in quotation marks or after a blank", "R-07")
REPEATED: Final = ("occurs more than once: the last one was read", "N-05")
READABLE: Final = ("occurs more than once: a content type of the data in UTF-8 was read", "N-05")
DECIDING: Final = ("occurs more than once: the one that names an event format was read", "N-05")
NUMBER: Final = ("is a number of another type than Integer: read as its JSON text", "J-03")
NESTED: Final = ("is an object or a list: read as its JSON text", "J-03")
UNREAD: Final = ("is JSON without a Python value", "J-03")


class Leniency(msgspec.Struct):
    """The accepted deviations of a record, and the problems for which lenient reading refuses the record.

    ``may_be_valid`` is true if the name of a header was corrected or is repeated, but the headers with exact
    names may form a valid event in binary mode. ``is_repeated`` is true if several headers have the same
    name, or nearly the same name.
    """

    tolerated: list[Problem] = []
    refused: list[Problem] = []
    may_be_valid: bool = False
    is_repeated: bool = False

    def of_content_type(self) -> Leniency:
        """Return a report with only the problems of content-type, or of ce_datacontenttype in its place."""
        return Leniency(_content_type_problems(self.tolerated), _content_type_problems(self.refused))


def _content_type_problems(problems: list[Problem]) -> list[Problem]:
    renamed = []
    for problem in problems:
        if str(problem.attribute).lower() == CONTENT_TYPE:
            renamed.append(problem)
        elif problem.attribute == "datacontenttype" and (
            problem.rule in {COPY[0], BARE_TYPE[0]} or problem.clause == "N-05"
        ):
            renamed.append(msgspec.structs.replace(problem, attribute=CONTENT_TYPE))
    return renamed


def leave_out(problem: Problem, value: AttributeValue | None, *, rule: str | None = None) -> LeftOut:
    """Return the report of an attribute, header or member that was left out; it contains the complete value.

    If ``value`` is bytes, it is the value of a header; bytes in UTF-8 are stored as text. The rule in the
    report is the rule of the problem followed by `LEFT_OUT`, unless ``rule`` is passed.
    """
    if isinstance(value, bytes):
        value = text_or_bytes(value)
    elif value is not None:
        value = canonical_text(value)
    return LeftOut(problem.attribute, rule or problem.rule + LEFT_OUT, problem.clause, value)


def text_or_bytes(value: bytes) -> str | bytes:
    """Return UTF-8 bytes as text, and other bytes unchanged."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
