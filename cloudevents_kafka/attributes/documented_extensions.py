"""The documented extensions of CloudEvents: the types and rules of their attributes.

Each extension is described in its own document, next to the core specification. This module contains the
rules that a single event can break: the types of attributes, and the constraints that the documents state
with MUST. The package `extensions` contains functions for the rules that programs must follow, and for
recommendations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from cloudevents_kafka.attributes.timestamps import instant, is_timestamp
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue

Attributes = Mapping[str, AttributeValue]


class Rule(msgspec.Struct, frozen=True):
    """A rule for the value of an attribute; the rule may depend on other attributes of the same event.

    ``check`` is called with the typed value of the attribute and with all attributes of the event. It returns
    whether the value obeys the rule that ``text`` describes.
    """

    text: str
    check: Callable[[AttributeValue, Attributes], bool]


class Extension(msgspec.Struct, frozen=True):
    """A known extension attribute: its type, its rules, and the other attributes that must be present."""

    type: AttributeType
    rules: tuple[Rule, ...] = ()
    needs: tuple[str, ...] = ()
    clause: str = "E-01"

    @property
    def accepts_any_text(self) -> bool:
        """Whether the extension attribute accepts any text that is not empty."""
        return self.type is AttributeType.STRING and not self.needs and set(self.rules) <= {NOT_EMPTY}


def _is_not_before_start(value: AttributeValue, attributes: Attributes) -> bool:
    start = attributes.get("deprecationfrom")
    if not (isinstance(value, str) and isinstance(start, str) and is_timestamp(start)):
        return True  # the type of deprecationfrom is checked separately
    return instant(value) >= instant(start)


def _is_list_without_spaces(value: AttributeValue, _: Attributes) -> bool:
    entries = [entry.strip(" ") for entry in str(value).split(",")]
    return any(entries) and not any(" " in entry for entry in entries)


NOT_EMPTY: Final = Rule("must not be empty", lambda value, _: value != "")
_POSITIVE: Final = Rule("must be greater than zero", lambda value, _: int(value) > 0)
_NOT_NEGATIVE: Final = Rule("must not be negative", lambda value, _: int(value) >= 0)
_TRUE: Final = Rule("must be true if it is set", lambda value, _: bool(value))
_NO_SCHEMA: Final = Rule(
    "must not be set together with dataschema", lambda _, attributes: "dataschema" not in attributes
)
_NOT_BEFORE_START: Final = Rule("must not be earlier than deprecationfrom", _is_not_before_start)
_LIST: Final = Rule("must be a comma-separated list of entries without spaces", _is_list_without_spaces)

RULES: Final[Mapping[str, Rule]] = {
    "not-empty": NOT_EMPTY,
    "positive": _POSITIVE,
    "not-negative": _NOT_NEGATIVE,
    "true": _TRUE,
    "no-schema": _NO_SCHEMA,
    "not-before-start": _NOT_BEFORE_START,
    "list": _LIST,
}
"""A dictionary from names to the rules for values of documented extensions.

The Java function uses the same names for these rules.
"""

_STRING: Final = AttributeType.STRING
_TIME: Final = AttributeType.TIMESTAMP
_BAM: Final = ("bamtxid", "bampid", "bamptxid", "bamptxsid")


def _document(
    clause: str, required: tuple[str, ...], **attributes: tuple[AttributeType, *tuple[Rule, ...]]
) -> dict[str, Extension]:
    """Return a dictionary of the extension attributes that one document of the specification defines.

    If an event has one of these attributes, it must also have all attributes that are named in ``required``.
    """
    return {
        name: Extension(type_, tuple(rules), tuple(needed for needed in required if needed != name), clause)
        for name, (type_, *rules) in attributes.items()
    }


DOCUMENTED: Final[Mapping[str, Extension]] = {
    **_document("X-01", (), partitionkey=(_STRING, NOT_EMPTY)),
    **_document("X-02", ("traceparent",), traceparent=(_STRING, NOT_EMPTY), tracestate=(_STRING,)),
    **_document("X-03", (), sequence=(_STRING, NOT_EMPTY)),
    **_document("X-04", (), dataref=(AttributeType.URI_REFERENCE,)),
    **_document("X-05", (), sampledrate=(AttributeType.INTEGER, _POSITIVE)),
    **_document("X-06", (), expirytime=(_TIME,)),
    **_document("X-07", (), recordedtime=(_TIME,)),
    **_document(
        "X-08",
        ("severitynumber",),
        severitytext=(_STRING, NOT_EMPTY),
        severitynumber=(AttributeType.INTEGER, _NOT_NEGATIVE),
    ),
    **_document(
        "X-09",
        ("deprecated",),
        deprecated=(AttributeType.BOOLEAN, _TRUE),
        deprecationfrom=(_TIME,),
        deprecationsunset=(_TIME, _NOT_BEFORE_START),
        deprecationmigration=(AttributeType.URI,),
    ),
    **_document("X-10", ("authtype",), authtype=(_STRING,), authid=(_STRING,), authclaims=(_STRING,)),
    **_document("X-11", (), correlationid=(_STRING, NOT_EMPTY), causationid=(_STRING, NOT_EMPTY)),
    **_document(
        "X-12",
        ("dataclassification",),
        dataclassification=(_STRING,),
        dataregulation=(_STRING, NOT_EMPTY, _LIST),
        datacategory=(_STRING, NOT_EMPTY),
    ),
    **_document(
        "X-13",
        _BAM,
        **dict.fromkeys(_BAM, (_STRING, NOT_EMPTY)),
        bamptxsstatus=(_STRING, NOT_EMPTY),
        bamptxcompleted=(AttributeType.BOOLEAN,),
    ),
    **_document(
        "X-14",
        (),
        opcuametadatamajorversion=(AttributeType.INTEGER, _NO_SCHEMA),
        opcuametadataminorversion=(AttributeType.INTEGER, _NO_SCHEMA),
        opcuastatus=(AttributeType.INTEGER,),
    ),
    **_document("X-15", (), dssematerial=(AttributeType.BINARY,)),
}
"""The attributes of all extension documents, by attribute name.

The clause of an attribute identifies its document.
"""
