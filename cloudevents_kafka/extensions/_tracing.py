"""Trace context: the trace in which an event originated, and the trace of each delivery of its record.

The names ``traceparent`` and ``tracestate`` have two meanings: as attributes and as headers. As attributes of
the event (extension distributed-tracing), ``traceparent`` and ``tracestate`` identify the trace in which the
event originated. A program that forwards the event does not change these attributes. As headers of the record
(W3C Trace Context), ``traceparent`` and ``tracestate`` identify one delivery from a producer to a consumer (a
hop). Each producer sets its own values in these headers. The function `start_trace` returns the attributes
and the headers that the first producer of an event sends. The function `with_hop_trace` sets the headers in a
program that forwards records.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Final

import msgspec

from cloudevents_kafka.event import Event
from cloudevents_kafka.record import Headers, Record, RecordInput

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?", re.ASCII
)
_SAMPLED: Final = 1
_RANDOM: Final = 2


def is_traceparent(text: str) -> bool:
    """Return whether a text is a valid traceparent of W3C Trace Context (3.2).

    If the version in the text is later than 00, only the fields that version 00 defines are checked.
    """
    match = _TRACEPARENT.fullmatch(text)
    return match is not None and not (match[1] == "00" and match[5])


class Trace(msgspec.Struct, frozen=True):
    """A W3C trace context: a ``traceparent``, and optionally a ``tracestate``.

    Examples:
        >>> from cloudevents_kafka.extensions import Trace
        >>> trace = Trace.begin()
        >>> trace.child().trace_id == trace.trace_id
        True
        >>> Trace.of(trace.carrier()) == trace
        True
    """

    traceparent: str
    tracestate: str | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for an invalid traceparent or tracestate."""
        if not is_traceparent(self.traceparent):
            raise ValueError(
                "traceparent must be version-trace-parent-flags in lower-case hexadecimal digits"
            )
        if self.tracestate is not None:
            state = _clean_tracestate(self.tracestate)
            if state is None:
                raise ValueError("tracestate must be one or more printable ASCII characters")
            msgspec.structs.force_setattr(self, "tracestate", state)

    @classmethod
    def begin(cls, *, sampled: bool = True) -> Trace:
        """Return the context of a new trace with random ids."""
        return cls(f"00-{_random_id(16)}-{_random_id(8)}-{_RANDOM | sampled:02x}")

    @classmethod
    def of(cls, carrier: Mapping[str, str]) -> Trace | None:
        """Return the trace in a propagator's dictionary (the carrier), or None; ignore all other keys."""
        return _read(carrier.get(TRACEPARENT), carrier.get(TRACESTATE))

    @property
    def trace_id(self) -> str:
        """The id of the whole trace, as 32 hexadecimal digits."""
        return self.traceparent[3:35]

    @property
    def parent_id(self) -> str:
        """The id of the caller's span in the trace, as 16 hexadecimal digits."""
        return self.traceparent[36:52]

    @property
    def sampled(self) -> bool:
        """Whether the caller possibly recorded the trace."""
        return bool(self._flags & _SAMPLED)

    @property
    def random(self) -> bool:
        """Whether the last seven bytes of the trace id are random (Trace Context level 2, 3.2.2.5.2)."""
        return bool(self._flags & _RANDOM)

    @property
    def _flags(self) -> int:
        return int(self.traceparent[53:55], 16)

    def child(self) -> Trace:
        """Return the trace with a new random parent id, in version 00 and without unknown flags."""
        flags = self._flags & (_SAMPLED | _RANDOM)
        return Trace(f"00-{self.trace_id}-{_random_id(8)}-{flags:02x}", self.tracestate)

    def carrier(self) -> dict[str, str]:
        """Return the trace as a carrier, a dictionary for propagators."""
        fields = {TRACEPARENT: self.traceparent, TRACESTATE: self.tracestate}
        return {name: text for name, text in fields.items() if text is not None}


def origin_trace(event: Event) -> Trace | None:
    """Return the trace in which an event originated, from the event's attributes, or None.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.extensions import Trace, origin_trace, start_trace
        >>> trace = Trace.begin()
        >>> event, headers = start_trace(Event(id="1", source="/shop", type="order.placed"), trace)
        >>> origin_trace(event) == trace
        True
    """
    return _read(event.text(TRACEPARENT), event.text(TRACESTATE))


def hop_trace(record: RecordInput) -> Trace | None:
    """Return the trace of a record's last delivery, from the record's headers, or None.

    If a record has several ``traceparent`` headers, the trace is ambiguous, and the result is None.

    Examples:
        >>> from cloudevents_kafka import Record
        >>> from cloudevents_kafka.extensions import hop_trace
        >>> hop = hop_trace(
        ...     Record(headers=[("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")])
        ... )
        >>> hop and (hop.parent_id, hop.sampled)
        ('b7ad6b7169203331', True)
    """
    record = Record.of(record)
    parents, states = _texts(record, TRACEPARENT), _texts(record, TRACESTATE)
    return _read(parents[0], ",".join(filter(None, states))) if len(parents) == 1 else None


def start_trace(event: Event, trace: Trace | None = None) -> tuple[Event, Headers]:
    """Return the event with trace attributes, and the trace headers for its first delivery.

    If the event already has a ``traceparent``, its attributes are not changed (extension
    distributed-tracing). The headers contain ``trace``. By default, ``trace`` is the trace in the event's
    attributes, or a new trace if the event has no such attributes.

    Examples:
        >>> from cloudevents_kafka import Event, EventProducer
        >>> from cloudevents_kafka.extensions import start_trace
        >>> event, headers = start_trace(Event(id="1", source="/shop", type="order.placed"))
        >>> delivery = EventProducer(producer).send(event, "orders", headers=headers)
        >>> [name for name, value in headers]
        ['traceparent']
    """
    origin = origin_trace(event)
    trace = trace or origin or Trace.begin()
    if TRACEPARENT not in event:  # the attributes of an event are not rewritten on the way
        event = event.replace(**{TRACESTATE: None, **trace.carrier()})
    return event, _headers(trace)


def with_hop_trace(record: RecordInput, trace: Trace) -> Record:
    """Return a record with the trace headers of ``trace``; they replace the record's own trace headers.

    Examples:
        >>> from cloudevents_kafka import Event, to_record
        >>> from cloudevents_kafka.extensions import Trace, hop_trace, start_trace, with_hop_trace
        >>> event, headers = start_trace(Event(id="1", source="/shop", type="order.placed"))
        >>> record = to_record(event, headers=headers)
        >>> hop = hop_trace(record) or Trace.begin()
        >>> hop_trace(with_hop_trace(record, hop.child())) == hop
        False
    """
    record = Record.of(record)
    headers = [(name, value) for name, value in record.headers if name not in (TRACEPARENT, TRACESTATE)]
    return msgspec.structs.replace(record, headers=headers + _headers(trace))


def _headers(trace: Trace) -> Headers:
    return [(name, text.encode()) for name, text in trace.carrier().items()]


def _texts(record: Record, name: str) -> list[str]:
    """Return the texts of all headers with this name; a value that is not UTF-8 becomes an invalid text."""
    return [(value or b"").decode("utf-8", "replace") for header, value in record.headers if header == name]


def _read(parent: str | None, state: str | None) -> Trace | None:
    """Return a received trace; an invalid ``tracestate`` is discarded, as W3C Trace Context demands."""
    if parent is None or not is_traceparent(parent):
        return None
    return Trace(parent, None if state is None else _clean_tracestate(state))


def _clean_tracestate(text: str) -> str | None:
    """Return a tracestate without tabs around its members (Trace Context 3.3.1.1), or None if it is invalid.

    The tabs are removed because attributes of events must not contain tabs. Spaces are preserved.
    """
    state = ",".join(member.strip(" \t") for member in text.split(",")) if "\t" in text else text
    return state if state and state.isascii() and state.isprintable() else None


def _random_id(size: int) -> str:
    while not (id := secrets.token_bytes(size)).strip(b"\0"):
        pass  # an id of zeros is invalid
    return id.hex()
