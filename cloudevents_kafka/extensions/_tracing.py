"""Traces in both places: the event's own attributes, and the headers of each hop.

The distributed-tracing extension and W3C Trace Context use the same two names for
different things. The attributes (headers ``ce_traceparent`` and ``ce_tracestate`` in
binary mode) tell where the event's journey began, and nobody rewrites them on the way.
The plain headers ``traceparent`` and ``tracestate`` tell of one hop, and each hop puts
its own. A producer sets both, a relay the headers alone, a consumer may ask for either::

    event, headers = start_trace(event)  # producer.send(event, headers=headers)
    hop = hop_trace(record)  # a relay; there may be none
    record = with_hop_trace(record, hop.child() if hop else Trace.begin())
    origin_trace(event), hop_trace(record)  # a consumer

`Trace.of` and `Trace.carrier` speak to OpenTelemetry's propagators.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record

PARENT: Final = "traceparent"
STATE: Final = "tracestate"

_PARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?", re.ASCII
)
_SAMPLED: Final = 1
_RANDOM: Final = 2


def is_traceparent(text: str) -> bool:
    """Tell whether the text is a traceparent of W3C Trace Context (3.2).

    Of versions to come as much is asked as the one of today lets readers ask.
    """
    match = _PARENT.fullmatch(text)
    return match is not None and not (match[1] == "00" and match[5])


class Trace(msgspec.Struct, frozen=True):
    """A place in a trace: ``traceparent`` and, where vendors add to it, ``tracestate``."""

    traceparent: str
    tracestate: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no traceparent or tracestate, with a `ValueError`."""
        if not is_traceparent(self.traceparent):
            raise ValueError("a traceparent is version-trace-parent-flags in lower-case hexadecimal digits")
        if self.tracestate is None:
            return
        if not _is_state(self.tracestate):
            raise ValueError("a tracestate is one or more printable characters of ASCII")
        msgspec.structs.force_setattr(self, "tracestate", _without_tabs(self.tracestate))

    @classmethod
    def begin(cls, *, sampled: bool = True) -> Trace:
        """Return the first place of a new trace, whose ids are random, as its flags say."""
        return cls(f"00-{_random(16)}-{_random(8)}-{_RANDOM | sampled:02x}")

    @classmethod
    def of(cls, carrier: Mapping[str, str]) -> Trace | None:
        """Read what a propagator laid out, whatever else is there; None where it tells no trace."""
        return _read(carrier.get(PARENT), carrier.get(STATE))

    @property
    def trace_id(self) -> str:
        """The id that all places of the trace share, 32 hexadecimal digits."""
        return self.traceparent[3:35]

    @property
    def parent_id(self) -> str:
        """The id of this place, 16 hexadecimal digits."""
        return self.traceparent[36:52]

    @property
    def sampled(self) -> bool:
        """Whether the caller may have recorded it."""
        return bool(self._flags & _SAMPLED)

    @property
    def random(self) -> bool:
        """Whether the trace id's last seven bytes are random (Trace Context level 2, 3.2.2.5.2)."""
        return bool(self._flags & _RANDOM)

    @property
    def _flags(self) -> int:
        return int(self.traceparent[53:55], 16)

    def child(self) -> Trace:
        """Return the next place of the trace, in version 00, with the flags that are defined there."""
        flags = self._flags & (_SAMPLED | _RANDOM)
        return Trace(f"00-{self.trace_id}-{_random(8)}-{flags:02x}", self.tracestate)

    def carrier(self) -> dict[str, str]:
        """Lay it out by name, as propagators take it."""
        fields = {PARENT: self.traceparent, STATE: self.tracestate}
        return {name: text for name, text in fields.items() if text is not None}


def origin_trace(event: Event) -> Trace | None:
    """Return where the event's journey began, by its attributes; None where they tell none."""
    return _read(event.text(PARENT), event.text(STATE))


def hop_trace(record: Record | Any) -> Trace | None:
    """Return the trace of the hop that brought a record, by its headers; None where they tell none.

    Where there is more than one traceparent nobody can tell which counts, so there is none.
    """
    record = Record.of(record)
    parents, states = _values(record, PARENT), _values(record, STATE)
    return _read(parents[0], ",".join(filter(None, states))) if len(parents) == 1 else None


def start_trace(event: Event, trace: Trace | None = None) -> tuple[Event, Headers]:
    """Give an event a trace to begin its journey with, and the headers for its first hop.

    An event that has one keeps it (distributed-tracing: it is not rewritten), and it is
    that of the first hop too unless another ``trace`` is given. A new one is begun where
    there is none.
    """
    began = origin_trace(event)
    trace = trace or began or Trace.begin()
    if PARENT not in event:
        event = event.replace(**{STATE: None, **trace.carrier()})
    return event, _headers(trace)


def with_hop_trace(record: Record | Any, trace: Trace) -> Record:
    """Make the same record with the headers of this hop, in place of those of the last one.

    Its event is not touched, nor are the attributes in it.
    """
    record = Record.of(record)
    kept = [(name, value) for name, value in record.headers if name not in (PARENT, STATE)]
    return msgspec.structs.replace(record, headers=kept + _headers(trace))


def _headers(trace: Trace) -> Headers:
    return [(name, text.encode()) for name, text in trace.carrier().items()]


def _values(record: Record, name: str) -> list[str]:
    """Return the texts of all headers of that name; what is not UTF-8 is no trace."""
    return [(value or b"").decode("utf-8", "replace") for header, value in record.headers if header == name]


def _read(parent: str | None, state: str | None) -> Trace | None:
    """Make a trace of what strangers sent; a bad tracestate is dropped, as W3C Trace Context has it."""
    if parent is None or not is_traceparent(parent):
        return None
    return Trace(parent, state if state is not None and _is_state(state) else None)


def _is_state(text: str) -> bool:
    members = _without_tabs(text)
    return members != "" and members.isascii() and members.isprintable()


def _without_tabs(state: str) -> str:
    """Return a tracestate without the tabs around its members, which say nothing (Trace Context 3.3.1.1).

    An attribute cannot have them. Spaces stay as they came.
    """
    return ",".join(member.strip(" \t") for member in state.split(",")) if "\t" in state else state


def _random(size: int) -> str:
    while not (drawn := secrets.token_bytes(size)).strip(b"\0"):
        pass  # an id of zeros means none
    return drawn.hex()
