"""The documented extensions of CloudEvents: their attributes, types and rules.

Each has a document of its own beside the core specification. To use any is optional;
who uses one has to keep what it says. Here stands what an event can be held to by
itself: the types, and the constraints at the level MUST. What is told to a system
(do not remove, do not change) no single event can show; what a document recommends
is in `advice`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from cloudevents_kafka.attributes.timestamps import instant, is_timestamp
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue

Attributes = Mapping[str, AttributeValue]


class Rule(msgspec.Struct, frozen=True):
    """What a value must keep, by itself or beside the other attributes of its event.

    ``kept`` takes the typed value and all attributes.
    """

    text: str
    kept: Callable[[AttributeValue, Attributes], bool]


class Extension(msgspec.Struct, frozen=True):
    """What is known of an extension attribute: its type, its rules, what it cannot be without."""

    type: AttributeType
    rules: tuple[Rule, ...] = ()
    needs: tuple[str, ...] = ()
    clause: str = "E-01"

    @property
    def accepts_any_text(self) -> bool:
        """Whether any text will do that is not empty."""
        return self.type is AttributeType.STRING and not self.needs and set(self.rules) <= {NOT_EMPTY}


def not_before(name: str) -> Rule:
    """Rule that a Timestamp is not earlier than another one, where both are good ones."""

    def kept(value: AttributeValue, attributes: Attributes) -> bool:
        other = attributes.get(name)
        if not (isinstance(value, str) and isinstance(other, str) and is_timestamp(other)):
            return True  # the other's own rule says what is wrong with it
        return instant(value) >= instant(other)

    return Rule(f"must not be earlier than {name}", kept)


def _entries_without_spaces(value: AttributeValue, _: Attributes) -> bool:
    entries = [entry.strip(" ") for entry in str(value).split(",")]
    return any(entries) and not any(" " in entry for entry in entries)


NOT_EMPTY: Final = Rule("must not be empty", lambda value, _: value != "")
_POSITIVE: Final = Rule("must be greater than zero", lambda value, _: int(value) > 0)
_NOT_NEGATIVE: Final = Rule("must not be negative", lambda value, _: int(value) >= 0)
_TRUE: Final = Rule("must be true where it is set", lambda value, _: bool(value))
_NO_SCHEMA: Final = Rule("must not stand beside dataschema", lambda _, all_: "dataschema" not in all_)
_LIST: Final = Rule("must be entries with commas between, without spaces inside", _entries_without_spaces)

_STRING: Final = AttributeType.STRING
_TIME: Final = AttributeType.TIMESTAMP
_BAM: Final = ("bamtxid", "bampid", "bamptxid", "bamptxsid")


def _of(
    clause: str, required: tuple[str, ...], **attributes: tuple[AttributeType, *tuple[Rule, ...]]
) -> dict[str, Extension]:
    """Lay out one document: its clause, its REQUIRED attributes, and the type and rules of each."""
    return {
        name: Extension(kind, tuple(rules), tuple(other for other in required if other != name), clause)
        for name, (kind, *rules) in attributes.items()
    }


DOCUMENTED: Final[Mapping[str, Extension]] = {
    **_of("X-01", (), partitionkey=(_STRING, NOT_EMPTY)),
    **_of("X-02", ("traceparent",), traceparent=(_STRING, NOT_EMPTY), tracestate=(_STRING,)),
    **_of("X-03", (), sequence=(_STRING, NOT_EMPTY)),
    **_of("X-04", (), dataref=(AttributeType.URI_REFERENCE,)),
    **_of("X-05", (), sampledrate=(AttributeType.INTEGER, _POSITIVE)),
    **_of("X-06", (), expirytime=(_TIME,)),
    **_of("X-07", (), recordedtime=(_TIME,)),
    **_of(
        "X-08",
        ("severitynumber",),
        severitytext=(_STRING, NOT_EMPTY),
        severitynumber=(AttributeType.INTEGER, _NOT_NEGATIVE),
    ),
    **_of(
        "X-09",
        ("deprecated",),
        deprecated=(AttributeType.BOOLEAN, _TRUE),
        deprecationfrom=(_TIME,),
        deprecationsunset=(_TIME, not_before("deprecationfrom")),
        deprecationmigration=(AttributeType.URI,),
    ),
    **_of("X-10", ("authtype",), authtype=(_STRING,), authid=(_STRING,), authclaims=(_STRING,)),
    **_of("X-11", (), correlationid=(_STRING, NOT_EMPTY), causationid=(_STRING, NOT_EMPTY)),
    **_of(
        "X-12",
        ("dataclassification",),
        dataclassification=(_STRING,),
        dataregulation=(_STRING, NOT_EMPTY, _LIST),
        datacategory=(_STRING, NOT_EMPTY),
    ),
    **_of(
        "X-13",
        _BAM,
        **dict.fromkeys(_BAM, (_STRING, NOT_EMPTY)),
        bamptxsstatus=(_STRING, NOT_EMPTY),
        bamptxcompleted=(AttributeType.BOOLEAN,),
    ),
    **_of(
        "X-14",
        (),
        opcuametadatamajorversion=(AttributeType.INTEGER, _NO_SCHEMA),
        opcuametadataminorversion=(AttributeType.INTEGER, _NO_SCHEMA),
        opcuastatus=(AttributeType.INTEGER,),
    ),
    **_of("X-15", (), dssematerial=(AttributeType.BINARY,)),
}
"""The attributes of all documents, by name; the clause says which document."""
