"""Advice: what the documents recommend, and an event does otherwise. It refuses nothing.

Beside SHOULD and RECOMMENDED there is what the documents demand of those who make the
events of one system (OPC UA), sign them, or tell who was the cause: others can read such
an event all the same, and are meant to, so it is no broken one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from cloudevents_kafka.attributes.documented_extensions import DOCUMENTED
from cloudevents_kafka.attributes.timestamps import from_datetime, instant, is_timestamp
from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.errors import Problem, preview
from cloudevents_kafka.event import Event
from cloudevents_kafka.extensions._opcua import opc_ua_problems
from cloudevents_kafka.extensions._severity import SEVERITY_NAMES
from cloudevents_kafka.extensions._tracing import is_traceparent
from cloudevents_kafka.extensions.signing._digest import DSSE_MATERIAL, PAYLOAD_TYPE, Material, read_material
from cloudevents_kafka.extensions.signing._dsse import read_envelope

_AUTH_TYPES: Final = (
    "app_user",
    "user",
    "service_account",
    "api_key",
    "system",
    "unauthenticated",
    "unknown",
)
_LABELS: Final = ("public", "internal", "confidential", "restricted")
_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+")
_TOKEN: Final = re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]|PRIVATE KEY-----")  # of JWT, of PEM
_TRUSTED: Final = {name for name, extension in DOCUMENTED.items() if extension.clause in ("X-10", "X-12")}


def unmet_recommendations(event: Event) -> list[Problem]:
    """List what an event does otherwise than the documents recommend; an empty list is the best."""
    found = [problem for name in event for problem in _of_name(name)]
    for name, clause, rule, kept in _ADVICE:
        text = event.text(name)
        if text is not None and not kept(text, event):
            found.append(Problem(name, rule, clause, preview(text)))
    return found + _of_claims(event) + _of_seal(event) + opc_ua_problems(event)


def _of_name(name: str) -> list[Problem]:
    if name in CORE or name in DOCUMENTED:
        return []
    found = []
    if name[:1].isdigit():
        found.append(Problem(name, "should start with a letter", "N-02"))
    if len(name) > 20:
        found.append(Problem(name, "should not have more than 20 characters", "N-06", f"{len(name)}"))
    return found


def _not_before_time(text: str, event: Event) -> bool:
    time = event.text("time")
    if time is None or not (is_timestamp(time) and is_timestamp(text)):
        return True
    return instant(text) >= instant(time)


def _has_been(text: str) -> bool:
    return not is_timestamp(text) or instant(text) <= instant(from_datetime(datetime.now(UTC)))


def _is_severity(text: str) -> bool:
    """Tell whether it is one of the names, in any case, or one of OpenTelemetry's short names, as WARN2."""
    return (text[:-1] if text[-1:] in ("2", "3", "4") else text).upper() in SEVERITY_NAMES


def _is_plain(text: str, _: Event) -> bool:
    return _PLAIN.fullmatch(text) is not None


def _is_label(text: str, event: Event) -> bool:
    return text in _LABELS or "dataregulation" in event  # a regulation may have labels of its own


def _is_seal(_: str, event: Event) -> bool:
    return _material(event) is not None


def _material(event: Event) -> Material | None:
    """Return the digests in dssematerial, whoever signed them; None where it is no envelope around such."""
    content = event.get(DSSE_MATERIAL)
    try:
        envelope = read_envelope(content if isinstance(content, bytes) else b"")
        material = read_material(envelope.payload)
    except ValueError:
        return None
    named = any(one.keyid for one in envelope.signatures)
    return material if named and envelope.payload_type == PAYLOAD_TYPE else None


def _holds_credentials(text: str) -> bool:
    return _TOKEN.search(text) is not None


def _of_claims(event: Event) -> list[Problem]:
    """Look for what a consumer could use in place of the principal; nothing of it is shown then."""
    rule = "should not hold what looks like a token or a key"
    return [Problem("authclaims", rule, "X-31")] if _holds_credentials(event.text("authclaims") or "") else []


def _of_seal(event: Event) -> list[Problem]:
    """Look at what the signature of a signed event does not cover as one would think."""
    material = _material(event)
    if material is None:
        return []
    empty = "should not be empty, as its signature does not tell that from being absent"
    found = [Problem(name, empty, "X-60") for name in material.names if event.text(name) == ""]
    unsigned = [name for name in event if name in _TRUSTED and name not in material.names]
    return found + [Problem(name, "should be signed where the event is", "X-62") for name in unsigned]


_ADVICE: Final[tuple[tuple[str, str, str, Callable[[str, Event], bool]], ...]] = (
    ("type", "R-17", "should start with a reverse DNS name", lambda text, _: "." in text.strip(".")),
    (
        "traceparent",
        "X-02",
        "should be version-trace-parent-flags of W3C Trace Context",
        lambda text, _: is_traceparent(text),
    ),
    ("dataref", "X-04", "refers to nothing", lambda text, _: text != ""),
    ("expirytime", "X-16", "should not be earlier than time", _not_before_time),
    ("recordedtime", "X-20", "should not be earlier than time", _not_before_time),
    ("recordedtime", "X-54", "should not be in the future", lambda text, _: _has_been(text)),
    ("severitytext", "X-23", "should be in upper case", lambda text, _: text == text.upper()),
    (
        "severitytext",
        "X-50",
        f"should be one of {', '.join(SEVERITY_NAMES)}",
        lambda text, _: _is_severity(text),
    ),
    (
        "authtype",
        "X-30",
        f"should be one of {', '.join(_AUTH_TYPES)}",
        lambda text, _: text in _AUTH_TYPES,
    ),
    (
        "authclaims",
        "X-10",
        "should be JSON",
        lambda text, _: _holds_credentials(text) or is_json(text.encode("utf-8", "surrogatepass")),
    ),
    (
        "deprecated",
        "X-70",
        "should come with deprecationmigration, which says what to use instead",
        lambda _, event: "deprecationmigration" in event,
    ),
    ("deprecationfrom", "X-27", "should not be in the future", lambda text, _: _has_been(text)),
    *(
        (name, "X-33", "should be ASCII letters, digits, hyphens, underscores and periods", _is_plain)
        for name in ("bampid", "bamptxid", "bamptxsid", "bamptxsstatus")
    ),
    ("dataclassification", "X-35", f"should be one of {', '.join(_LABELS)}", _is_label),
    (DSSE_MATERIAL, "X-43", "should be a DSSE envelope around digests of the event", _is_seal),
)
