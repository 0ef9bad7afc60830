"""Checks whether an event follows the recommendations of the extension documents.

The recommendations are the SHOULD and RECOMMENDED rules, and some MUST rules that apply only to producers.
Most of these MUST rules concern OPC UA, signatures and the authorization context. An event that does not
follow a recommendation is not refused, because consumers should read it nevertheless.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.attributes.timestamps import from_datetime, instant, is_timestamp
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.codecs.payload import implies_json
from cloudevents_kafka.errors import DataError, Problem
from cloudevents_kafka.event import Event, raw_parts
from cloudevents_kafka.extensions._dataref import decode_event_json, has_json
from cloudevents_kafka.extensions._tracing import is_traceparent
from cloudevents_kafka.extensions._trackers import SEVERITY_NAMES
from cloudevents_kafka.extensions.dsse import (
    DSSE_MATERIAL,
    PAYLOAD_TYPE,
    Material,
    read_envelope,
    read_material,
)
from cloudevents_kafka.primitives.preview import preview

_AUTHTYPES: Final = ["app_user", "user", "service_account", "api_key", "system", "unauthenticated", "unknown"]
_LABELS: Final = ("public", "internal", "confidential", "restricted")
_TRACE_RULE: Final = "should be version-trace-parent-flags of W3C Trace Context"
_MIGRATION: Final = "should be used with deprecationmigration, which names the replacement"
_PLAIN_RULE: Final = "should be ASCII letters, digits, hyphens, underscores and periods"
_DSSE_RULE: Final = "should be a DSSE envelope around digests of the event"
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
_TOKEN: Final = re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]|PRIVATE KEY-----")  # JWT or PEM
_SIGNED: Final = {name for name, extension in DOCUMENTED.items() if extension.clause in ("X-10", "X-12")}
_OPC_UA_DATA_TYPES: Final = ("ua-keyframe", "ua-deltaframe", "ua-event")
_OPC_UA_HEADERS: Final = ({"MessageId", "Messages"}, {"DataSetWriterId", "Payload"})  # of both message kinds


def unmet_recommendations(event: Event) -> list[Problem]:
    """Return a problem for each recommendation that an event does not follow.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import unmet_recommendations
        >>> event = Event(id="1", source="/shop", type="placed")
        >>> [problem.attribute for problem in unmet_recommendations(event)]
        ['type']
    """
    problems = [problem for name in event for problem in _name_problems(name)]
    for name, clause, rule, is_met in _RECOMMENDATIONS:
        text = event.text(name)
        if text is not None and not is_met(text, event):
            problems.append(Problem(name, rule, clause, preview(text)))
    if _has_credentials(event.text("authclaims") or ""):
        problems.append(Problem("authclaims", "should not contain a token or a key", "X-31"))  # not quoted
    return problems + _signature_problems(event) + _opc_ua_problems(event)


def _name_problems(name: str) -> list[Problem]:
    problems = []
    if name not in CORE and name not in DOCUMENTED:
        if name[:1].isdigit():
            problems.append(Problem(name, "should start with a letter", "N-02"))
        if len(name) > 20:
            problems.append(Problem(name, "should not have more than 20 characters", "N-06", f"{len(name)}"))
    return problems


def _not_before_time(text: str, event: Event) -> bool:
    time = event.text("time")
    if time is None or not (is_timestamp(time) and is_timestamp(text)):
        return True
    return instant(text) >= instant(time)


def _is_past(text: str, _: Event) -> bool:
    return not is_timestamp(text) or instant(text) <= instant(from_datetime(datetime.now(UTC)))


def _is_severity(text: str, _: Event) -> bool:
    """Return whether a text is a recommended name of a severity, such as WARN, warn or WARN2."""
    return (text[:-1] if text[-1:] in ("2", "3", "4") else text).upper() in SEVERITY_NAMES


def _is_label(text: str, event: Event) -> bool:
    return text in _LABELS or "dataregulation" in event  # a regulation may define other labels


def _is_claims(text: str, _: Event) -> bool:
    return _has_credentials(text) or is_json(text.encode("utf-8", "surrogatepass"))


def _has_credentials(text: str) -> bool:
    return _TOKEN.search(text) is not None


def _material(event: Event) -> Material | None:
    """Return the unverified digests in ``dssematerial``, or None if it is not an envelope with digests."""
    content = event.get(DSSE_MATERIAL)
    try:
        envelope = read_envelope(content if isinstance(content, bytes) else b"")
        material = read_material(envelope.payload)
    except ValueError:
        return None
    has_keyid = any(signature.keyid for signature in envelope.signatures)
    return material if has_keyid and envelope.payload_type == PAYLOAD_TYPE else None


def _signature_problems(event: Event) -> list[Problem]:
    """Return the problems of a signed event: attributes that should be signed or should not be empty."""
    material = _material(event)
    if material is None:
        return []
    empty = "should not be empty: the signature would also be valid if the attribute were absent"
    problems = [Problem(name, empty, "X-60") for name in material.names if event.text(name) == ""]
    unsigned = [name for name in event if name in _SIGNED and name not in material.names]
    return problems + [Problem(name, "should be signed, as the event is", "X-62") for name in unsigned]


def _opc_ua_problems(event: Event) -> list[Problem]:
    """Return a problem for each recommendation that an event with an OPC UA message does not follow.

    Only the producer knows the fields of the OPC UA message, so attributes that depend on these fields are
    not checked.
    """
    names = ["subject", "time"]
    if event.type in _OPC_UA_DATA_TYPES:
        names += ["sequence", "traceparent", "recordedtime"]
    elif event.type != "ua-metadata":
        return []
    rule = f"should be present in an OPC UA message of type {event.type}"
    missing = [Problem(name, rule, "X-40") for name in names if name not in event]
    return missing + [
        Problem(name, rule, "X-64") for name, rule, is_met in _OPC_UA_RULES if not is_met(event)
    ]


def _is_typed_json(event: Event) -> bool:
    return not has_json(event) or media_type(event.datacontenttype or "").essence == "application/json"


def _has_schema(event: Event) -> bool:
    content_type = event.datacontenttype
    if content_type is None or event.payload is None or event.type not in _OPC_UA_DATA_TYPES:
        return True
    is_json = implies_json(content_type) or media_type(content_type).essence == "application/json+gzip"
    return is_json or "dataschema" in event


def _has_event_id(event: Event) -> bool:
    return event.type != "ua-event" or event.subject is None or bool(re.fullmatch(".+/.+", event.subject))


def _is_one_dataset(event: Event) -> bool:
    if event.type not in _OPC_UA_DATA_TYPES or not has_json(event):
        return True
    try:
        data = decode_event_json(event, event.payload or b"")
    except DataError:  # reported when it is read
        return True
    if isinstance(data, dict):
        return not any(headers <= data.keys() for headers in _OPC_UA_HEADERS)
    return not isinstance(data, list)


_RECOMMENDATIONS: Final[tuple[tuple[str, str, str, Callable[[str, Event], bool]], ...]] = (
    ("type", "R-17", "should start with a reverse DNS name", lambda text, _: "." in text.strip(".")),
    ("traceparent", "X-02", _TRACE_RULE, lambda text, _: is_traceparent(text)),
    ("dataref", "X-04", "should refer to the data", lambda text, _: text != ""),
    ("expirytime", "X-16", "should not be earlier than time", _not_before_time),
    ("recordedtime", "X-20", "should not be earlier than time", _not_before_time),
    ("recordedtime", "X-54", "should not be in the future", _is_past),
    ("severitytext", "X-23", "should be in upper case", lambda text, _: text == text.upper()),
    ("severitytext", "X-50", f"should be one of {', '.join(SEVERITY_NAMES)}", _is_severity),
    ("authtype", "X-30", f"should be one of {', '.join(_AUTHTYPES)}", lambda text, _: text in _AUTHTYPES),
    ("authclaims", "X-10", "should be JSON", _is_claims),
    ("deprecated", "X-70", _MIGRATION, lambda _, event: "deprecationmigration" in event),
    ("deprecationfrom", "X-27", "should not be in the future", _is_past),
    *(
        (name, "X-33", _PLAIN_RULE, lambda text, _: _PLAIN.fullmatch(text) is not None)
        for name in ("bampid", "bamptxid", "bamptxsid", "bamptxsstatus")
    ),
    ("dataclassification", "X-35", f"should be one of {', '.join(_LABELS)}", _is_label),
    (DSSE_MATERIAL, "X-43", _DSSE_RULE, lambda _, event: _material(event) is not None),
)

# An event that was not read from a record has no mode yet.
_OPC_UA_RULES: Final[tuple[tuple[str | None, str, Callable[[Event], bool]], ...]] = (
    (None, "should be in binary mode for an OPC UA message", lambda event: raw_parts(event)[1] is None),
    ("datacontenttype", "should be application/json for JSON data of an OPC UA message", _is_typed_json),
    ("dataschema", "should be present if the data of an OPC UA message is not JSON", _has_schema),
    ("subject", "should end with a slash and the EventId in an OPC UA message of ua-event", _has_event_id),
    ("data", "should be one OPC UA dataset message without headers", _is_one_dataset),
)
