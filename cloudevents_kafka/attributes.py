"""The CloudEvents type system: attribute names, types, canonical texts, and the rules.

An event's attributes stand in a plain dict from name to value. A value is the
canonical text (`str`) for String, URI, URI-reference and Timestamp, and a Python
`bool`, `int` or `bytes` for Boolean, Integer and Binary. Received in a header, all
are text; what is known to be of another type is turned into it.

The rules are written once, in `find_problems`. `surely_good` and its parts are a quick
look that passes nearly every good event and never a bad one; what they do not pass
goes to `find_problems`, which decides.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from cloudevents_kafka.errors import Problem, shown
from cloudevents_kafka.media_type import media_type
from cloudevents_kafka.timestamps import from_datetime, is_timestamp

AttributeValue = str | int | bool | bytes
"""An attribute as an event holds it."""

SPECVERSION: Final = "1.0"
REQUIRED: Final = ("specversion", "id", "source", "type")
CORE: Final = (*REQUIRED, "datacontenttype", "dataschema", "subject", "time")


class AttributeType(Enum):
    """The seven types of the core specification; there are no others."""

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"
    BINARY = "Binary"
    URI = "URI"
    URI_REFERENCE = "URI-reference"
    TIMESTAMP = "Timestamp"


class Extension(msgspec.Struct, frozen=True):
    """What is known of an extension attribute: its type, and a rule of its own.

    ``accepts`` takes the typed value and says whether it keeps the rule that
    ``rule`` states.
    """

    type: AttributeType
    rule: str = ""
    accepts: Callable[[AttributeValue], bool] | None = None


# --- texts and their types -------------------------------------------------

_NAME: Final = re.compile(r"[a-z0-9]+", re.ASCII)
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_FORBIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
    + "]"
)
# RFC 3986 without its ban on non-ASCII letters (as IRIs have them): no white space, no control
# character, none of the delimiters it leaves out, and % only before two hexadecimal digits.
_URI_REFERENCE: Final = re.compile(r'(?:[^\s\x00-\x20\x7f-\x9f<>"{}|\\^`%]|%[0-9A-Fa-f]{2})*')
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
INTEGER_RANGE: Final = range(-(2**31), 2**31)


def is_name(text: str) -> bool:
    """Tell whether the text may name an attribute: a-z and 0-9, and not ``data``."""
    return _NAME.fullmatch(text) is not None and text != "data"


def is_string(text: str) -> bool:
    """Tell whether the text is a String: no control, surrogate or noncharacter."""
    return text.isprintable() or _FORBIDDEN.search(text) is None


def is_uri_reference(text: str) -> bool:
    """Tell whether the text is a URI-reference of RFC 3986 (4.1), non-ASCII allowed."""
    return _URI_REFERENCE.fullmatch(text) is not None


def is_uri(text: str) -> bool:
    """Tell whether the text is a URI with a scheme; a fragment is allowed."""
    return _SCHEME.match(text) is not None and is_uri_reference(text)


def parse_integer(text: str) -> int:
    """Parse the canonical text of an Integer; `ValueError` says what is wrong."""
    if _INTEGER.fullmatch(text) is None or len(text) > 11 or int(text) not in INTEGER_RANGE:
        raise ValueError("an Integer is a 32-bit number in plain digits")
    return int(text)


def parse_boolean(text: str) -> bool:
    """Parse the canonical text of a Boolean, ``true`` or ``false``."""
    if text not in ("true", "false"):
        raise ValueError("a Boolean is true or false")
    return text == "true"


def parse_binary(text: str) -> bytes:
    """Parse base64 of RFC 4648: standard alphabet, padded, no bit left over."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = None
    if decoded is None or base64.b64encode(decoded) != text.encode():  # it ignores excess padding and bits
        raise ValueError("a Binary is base64 of RFC 4648, padded")
    return decoded


def canonical_text(value: AttributeValue) -> str:
    """Return the canonical text of an attribute value (core: Type System)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


_PARSERS: Final[dict[AttributeType, Callable[[str], AttributeValue]]] = {
    AttributeType.BOOLEAN: parse_boolean,
    AttributeType.INTEGER: parse_integer,
    AttributeType.BINARY: parse_binary,
}
_PYTHON_TYPES: Final = {AttributeType.BOOLEAN: bool, AttributeType.INTEGER: int, AttributeType.BINARY: bytes}
_TYPE_RULES: Final[dict[AttributeType, tuple[str, str]]] = {
    AttributeType.BOOLEAN: ("must be true or false", "T-03"),
    AttributeType.INTEGER: ("must be a whole number of 32 bits in plain digits", "T-05"),
    AttributeType.STRING: ("must be text without control characters, surrogates and noncharacters", "T-06"),
    AttributeType.BINARY: ("must be bytes, or base64 of RFC 4648 with padding", "T-09"),
    AttributeType.URI: ("must be a URI with a scheme", "T-10"),
    AttributeType.URI_REFERENCE: ("must be a URI-reference", "T-11"),
    AttributeType.TIMESTAMP: ("must be an RFC 3339 timestamp", "T-12"),
}
_TEXT_CHECKS: Final[dict[AttributeType, Callable[[str], bool]]] = {
    AttributeType.STRING: is_string,
    AttributeType.URI: is_uri,
    AttributeType.URI_REFERENCE: is_uri_reference,
    AttributeType.TIMESTAMP: is_timestamp,
}


# --- known extensions ------------------------------------------------------


def _filled(value: AttributeValue) -> bool:
    return value != ""


def _text(rule: str = "must not be empty") -> Extension:
    return Extension(AttributeType.STRING, rule, _filled)


_ANY_TEXT: Final = Extension(AttributeType.STRING)
_INT: Final = Extension(AttributeType.INTEGER)
_TIME: Final = Extension(AttributeType.TIMESTAMP)

_extensions: Final[dict[str, Extension]] = {
    "partitionkey": _text(),
    "traceparent": _text(),
    "tracestate": _ANY_TEXT,
    "sequence": _text(),
    "dataref": Extension(AttributeType.URI_REFERENCE, "must not be empty", _filled),
    "sampledrate": Extension(AttributeType.INTEGER, "must be greater than zero", lambda v: int(v) > 0),
    "expirytime": _TIME,
    "recordedtime": _TIME,
    "severitytext": _text(),
    "severitynumber": Extension(AttributeType.INTEGER, "must not be negative", lambda v: int(v) >= 0),
    "deprecated": Extension(AttributeType.BOOLEAN, "must be true where it is set", bool),
    "deprecationfrom": _TIME,
    "deprecationsunset": _TIME,
    "deprecationmigration": Extension(AttributeType.URI),
    "authtype": _text(),
    "authid": _ANY_TEXT,
    "authclaims": _ANY_TEXT,
    "correlationid": _text(),
    "causationid": _text(),
    "dataclassification": _text(),
    "dataregulation": _text(),
    "datacategory": _text(),
    "bamtxid": _text(),
    "bampid": _text(),
    "bamptxid": _text(),
    "bamptxsid": _text(),
    "bamptxsstatus": _ANY_TEXT,
    "bamptxcompleted": Extension(AttributeType.BOOLEAN),
    "opcuametadatamajorversion": _INT,
    "opcuametadataminorversion": _INT,
    "opcuastatus": _INT,
    "dssematerial": Extension(AttributeType.BINARY),
}
# What a quick look cannot settle: all known extensions but the plain texts.
_ruled: Final[set[str]] = {n for n, e in _extensions.items() if e.type is not AttributeType.STRING}
_EVENT_TYPES: Final = {
    "source": AttributeType.URI_REFERENCE,
    "dataschema": AttributeType.URI,
    "time": AttributeType.TIMESTAMP,
}


_on_registration: Final[list[Callable[[], None]]] = []


def on_registration(forget: Callable[[], None]) -> None:
    """Have a function called whenever an extension becomes known: whoever remembers names must."""
    _on_registration.append(forget)


def register_extension(
    name: str,
    type: AttributeType,
    *,
    rule: str = "",
    accepts: Callable[[AttributeValue], bool] | None = None,
) -> None:
    """Make the type of an extension attribute known, in this process.

    From then on ``event[name]`` has that type wherever it was read from, and a value
    that is not of it, or that ``accepts`` turns down, makes the event invalid. To
    register a name again replaces what was known. `ValueError` for a bad name.
    """
    if not is_name(name) or name in CORE:
        raise ValueError(f"{name!r} cannot name an extension: lower-case a-z and 0-9, and no core attribute")
    _extensions[name] = Extension(type, rule, accepts)
    _ruled.add(name)
    _plain_names.clear()
    for forget in _on_registration:
        forget()


def type_of(name: str) -> AttributeType:
    """Return the type of an attribute: String where nothing else is known."""
    if name in CORE:
        return _EVENT_TYPES.get(name, AttributeType.STRING)
    known = _extensions.get(name)
    return AttributeType.STRING if known is None else known.type


# --- from what people write to what an event holds --------------------------


def to_attribute(value: object) -> AttributeValue:
    """Turn a Python value into an attribute value, or say in a `ValueError` why not.

    A datetime becomes its RFC 3339 text, bytes-likes become bytes, an enum of text
    its text. Nothing else is guessed at.
    """
    if isinstance(value, bool | str | int | bytes):
        return _plain(value)
    if isinstance(value, datetime):
        return from_datetime(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise ValueError(f"must be text, a whole number, a bool, bytes or a datetime, not {type(value).__name__}")


def _plain(value: AttributeValue) -> AttributeValue:
    """Strip subclasses (enums above all), whose own text may differ from their value."""
    if type(value) in (str, bool, int, bytes):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__index__(value) if isinstance(value, int) else bytes(value)


def typed(name: str, value: AttributeValue) -> AttributeValue:
    """Turn the canonical text of a Boolean, Integer or Binary into its value.

    A text that does not fit stays as it is, for `find_problems` to report.
    """
    parser = _PARSERS.get(type_of(name))
    if parser is None or not isinstance(value, str):
        return value
    try:
        return parser(value)
    except ValueError:
        return value


def with_types(attributes: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Give the attributes of known type their type; the dict itself, where none needs it."""
    if _ruled.isdisjoint(attributes):
        return attributes
    return {name: typed(name, value) for name, value in attributes.items()}


# --- the rules ---------------------------------------------------------------

_sources: Final[set[str]] = set()
_schemas: Final[set[str]] = set()
_plain_names: Final[dict[tuple[str, ...], int]] = {}
_REMEMBERED: Final = 4096
_REMEMBERED_LENGTH: Final = 256
_ONLY_TEXTS: Final = frozenset((str,))
_write_json: Final = msgspec.json.Encoder().encode


def surely_good(attributes: Mapping[str, Any]) -> bool:
    """Tell, quickly, that attributes of any names and types are texts that break no rule."""
    return (
        _ONLY_TEXTS.issuperset(map(type, attributes.values()))
        and plain_length(tuple(attributes)) >= 0
        and surely_strings("".join(attributes.values()))
        and surely_valid(attributes)
    )


def surely_strings(joined: str) -> bool:
    """Tell, quickly, that texts put together hold nothing that a String may not hold."""
    if joined.isascii():
        # JSON escapes control characters, so a text that it leaves alone has none; that leaves DEL.
        return len(_write_json(joined)) == len(joined) + 2 and "\x7f" not in joined
    return is_string(joined)


def surely_valid(attributes: Mapping[str, Any]) -> bool:
    """Tell, quickly, that attributes break no rule; False means "look closer".

    The names must be plain (`plain_length`), and the values pass `surely_strings`.
    Values that many events share are remembered once they proved good.
    """
    if "" in attributes.values():
        return False
    try:
        if attributes["specversion"] != SPECVERSION or not attributes["id"] or not attributes["type"]:
            return False
        source = attributes["source"]
    except KeyError:
        return False
    return (
        (source in _sources or (is_uri_reference(source) and _remember(_sources, source)))
        and ("time" not in attributes or is_timestamp(attributes["time"]))
        and ("datacontenttype" not in attributes or media_type(attributes["datacontenttype"]).valid)
        and ("dataschema" not in attributes or _is_schema(attributes["dataschema"]))
    )


def _is_schema(text: str) -> bool:
    return text in _schemas or (is_uri(text) and _remember(_schemas, text))


def plain_length(names: tuple[str, ...]) -> int:
    """Return how long the names are together, if they are plain; else -1.

    Plain names may name attributes whose values are texts, by all that is known.
    Events of one kind share their names, so a list that proved good is remembered.
    """
    length = _plain_names.get(names)
    if length is None:
        if not all(is_name(name) and name not in _ruled for name in names):
            return -1
        length = len("".join(names))
        if length <= _REMEMBERED_LENGTH:
            if len(_plain_names) >= _REMEMBERED:
                _plain_names.clear()
            _plain_names[names] = length
    return length


def _remember(seen: set[str], text: str) -> bool:
    """Keep a text that proved good, within bounds; true, for use in a condition."""
    if len(text) <= _REMEMBERED_LENGTH:
        if len(seen) >= _REMEMBERED:
            seen.clear()
        seen.add(text)
    return True


def find_problems(attributes: Mapping[str, AttributeValue]) -> list[Problem]:
    """Find every rule of the core specification and known extensions that is broken.

    Values are as `with_types` leaves them. An empty list means: a valid event.
    """
    problems = [Problem(name, "is required", "R-01") for name in REQUIRED if name not in attributes]
    for name, value in attributes.items():
        problem = _problem_of(name, value)
        if problem is not None:
            problems.append(problem)
    return problems


_FILLED_CLAUSES: Final = {
    "id": "R-02",
    "source": "R-04",
    "specversion": "R-05",
    "type": "R-06",
    "datacontenttype": "R-07",
    "dataschema": "R-11",
    "subject": "R-12",
    "time": "R-13",
}


def _problem_of(name: str, value: AttributeValue) -> Problem | None:
    if not is_name(name):
        return _name_problem(name)
    if name in _FILLED_CLAUSES:
        return _core_problem(name, value)
    known = _extensions.get(name)
    if known is None:
        return _type_problem(name, value, _native_type(value))
    problem = _type_problem(name, value, known.type)
    if problem is None and known.accepts is not None and not known.accepts(value):
        return Problem(name, known.rule or "is not accepted by its extension's rule", "E-01", shown(value))
    return problem


def _name_problem(name: str) -> Problem:
    if name == "data":
        return Problem("data", "cannot name an attribute: data is not one", "N-04")
    if name == "":
        return Problem("", "an attribute name has at least one character", "N-03", "''")
    return Problem(name, "an attribute name has only a-z and 0-9", "N-01", shown(name))


def _core_problem(name: str, value: AttributeValue) -> Problem | None:
    clause = _FILLED_CLAUSES[name]
    if value == "":
        return Problem(name, "must not be empty", clause, "''")
    if not isinstance(value, str):
        return Problem(name, "must be text", clause, shown(value))
    if name == "specversion" and value != SPECVERSION:
        return Problem(name, f"must be {SPECVERSION}; other versions are not supported", clause, shown(value))
    if name == "datacontenttype" and is_string(value) and not media_type(value).valid:
        return Problem(name, "must be a media type of RFC 2046", clause, shown(value))
    return _type_problem(name, value, type_of(name))


def _native_type(value: AttributeValue) -> AttributeType:
    for kind, python in _PYTHON_TYPES.items():
        if isinstance(value, python):
            return kind
    return AttributeType.STRING


def _type_problem(name: str, value: object, kind: AttributeType) -> Problem | None:
    rule, clause = _TYPE_RULES[kind]
    check = _TEXT_CHECKS.get(kind)
    if check is None:
        good = type(value) is _PYTHON_TYPES[kind] and (
            kind is not AttributeType.INTEGER or value in INTEGER_RANGE
        )
        clause = "T-04" if type(value) is int and kind is AttributeType.INTEGER else clause
        return None if good else Problem(name, rule, clause, shown(value))
    if not isinstance(value, str):
        scalar = isinstance(value, bool | int | bytes)
        return Problem(
            name,
            rule if scalar else "must be of one of the seven types",
            clause if scalar else "T-01",
            shown(value),
        )
    if not is_string(value):
        return Problem(name, _TYPE_RULES[AttributeType.STRING][0], "T-06", shown(value))
    return None if check(value) else Problem(name, rule, clause, shown(value))
