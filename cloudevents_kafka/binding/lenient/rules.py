"""The texts and clauses of what lenient reading accepts by id, for Python and for the Java function."""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.attributes.documented_extensions import NOT_EMPTY
from cloudevents_kafka.attributes.types import TYPES, AttributeType
from cloudevents_kafka.attributes.validation import name_problem

LEFT_OUT: Final = ": left out"
"""Ends the rule of an attribute that the event is read without."""
NO_CONTENT_TYPE: Final = ("header is missing: the value was read as a JSON event", "K-09")
OTHER_CONTENT_TYPE: Final = ("does not name an event format: the value was read as a JSON event", "K-15")
COPY: Final = ("is in ce_datacontenttype", "K-04")
HEADER: Final = ("was read as ", "K-05")
"""Of a name of a header, before the exact one."""
MEMBER: Final = ("was read as ", "N-01")
"""Of a name of a JSON member, before that of the attribute."""
NESTED: Final = ("is an object or a list: kept as its JSON text", "J-03")

_NO_NAME: Final = name_problem("")
_NAME: Final = name_problem("A")
_EMPTY: Final = NOT_EMPTY.text + LEFT_OUT


def _type(kind: AttributeType) -> tuple[str, str]:
    return TYPES[kind].rule, TYPES[kind].clause


DEVIATIONS: Final = {
    "no-content-type": NO_CONTENT_TYPE,
    "other-content-type": OTHER_CONTENT_TYPE,
    "copy": COPY,
    "header": HEADER,
    "member": MEMBER,
    "nested": NESTED,
    "no-name": (_NO_NAME.rule + LEFT_OUT, _NO_NAME.clause),
    "name": (_NAME.rule + LEFT_OUT, _NAME.clause),
    "no-subject": (_EMPTY, "R-12"),
    "no-time": (_EMPTY, "R-13"),
    "empty": (_EMPTY, "E-01"),  # of an extension, whose document has the clause
    "boolean": _type(AttributeType.BOOLEAN),
    "uri": _type(AttributeType.URI),
    "uri-reference": _type(AttributeType.URI_REFERENCE),
    "timestamp": _type(AttributeType.TIMESTAMP),
}
"""The rule and the clause of each deviation that the Java function finds, too."""
