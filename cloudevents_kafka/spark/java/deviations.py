"""The ids of the deviations that the Java function accepts, and the texts of the rules in Python."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.attributes.documented_extensions import NOT_EMPTY
from cloudevents_kafka.attributes.types import TYPES, AttributeType
from cloudevents_kafka.attributes.validation import name_problem
from cloudevents_kafka.binding.lenient import rules
from cloudevents_kafka.binding.lenient.rules import LEFT_OUT

_NO_NAME: Final = name_problem("")
_NAME: Final = name_problem("A")
_EMPTY: Final = NOT_EMPTY.text + LEFT_OUT


def _type(kind: AttributeType) -> tuple[str, str]:
    return TYPES[kind].rule, TYPES[kind].clause


DEVIATIONS: Final = {
    "no-content-type": rules.NO_CONTENT_TYPE,
    "other-content-type": rules.OTHER_CONTENT_TYPE,
    "copy": rules.COPY,
    "header": rules.HEADER,
    "member": rules.MEMBER,
    "nested": rules.NESTED,
    "no-name": (_NO_NAME.rule + LEFT_OUT, _NO_NAME.clause),
    "name": (_NAME.rule + LEFT_OUT, _NAME.clause),
    "no-subject": (_EMPTY, "R-12"),
    "no-time": (_EMPTY, "R-13"),
    "empty": (_EMPTY, "E-01"),  # of an extension, whose document has the clause
    "boolean": _type(AttributeType.BOOLEAN),
    "uri": _type(AttributeType.URI),
    "uri-reference": _type(AttributeType.URI_REFERENCE),
    "no-timestamp": (TYPES[AttributeType.TIMESTAMP].rule + LEFT_OUT, TYPES[AttributeType.TIMESTAMP].clause),
}
"""The broken rule, and its clause of the specification, by the deviation's id in Java."""


def deviation_texts() -> str:
    """Return the table of deviations as an argument of the Java function.

    ``Rules.java`` describes the form of this argument.
    """
    return "\n".join(f"{name} {clause} {rule}" for name, (rule, clause) in DEVIATIONS.items())
