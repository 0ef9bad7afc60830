"""Traces of events and of hops, which have the same names in attributes and headers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry import trace as otel
from opentelemetry.propagators.textmap import Getter, Setter
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cloudevents_kafka import Event, EventProducer, Record, decode, from_record, to_record
from cloudevents_kafka.extensions import (
    Trace,
    hop_trace,
    origin_trace,
    start_trace,
    with_hop_trace,
)
from cloudevents_kafka.extensions._tracing import is_traceparent
from cloudevents_kafka.testing import FakeProducer
from tests.support import strategies as make
from tests.support.cases import each

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"
EVENT = Event(id="1", source="/", type="t")


@each(
    ("text", "good"),
    [
        (GOOD, True),
        (f"00-{TRACE}-{SPAN}-00", True),
        (f"00-{TRACE}-{SPAN}-ff", True),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", True),
        (f"cc-{TRACE}-{SPAN}-01.future", False),
        (f"cc-{TRACE}-{SPAN}-01-\n", False),
        (f"00-{TRACE}-{SPAN}-01-more", False),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (GOOD.upper(), False),
        (f" {GOOD}", False),
        (f"{GOOD}\n", False),
        (f"00-{TRACE}-{SPAN}", False),
        (f"{TRACE}-{SPAN}-00000011", False),
        ("00-" + "٣" * 32 + f"-{SPAN}-01", False),
        ("", False),
    ],
)
def test_traceparents(text: str, *, good: bool) -> None:
    """A traceparent has a version, ids that are not zero, and flags, in lower case."""
    assert is_traceparent(text) is good
    if good:
        assert Trace(text).trace_id == TRACE
        assert Trace(text).parent_id == SPAN
        assert Trace(text).sampled is (int(text[53:55], 16) % 2 == 1)
    else:
        with pytest.raises(ValueError, match="traceparent must be version-trace-parent-flags"):
            Trace(text)


@each("state", ["", "a=é", "a=b\n", "\ud800"])
def test_invalid_tracestates_are_refused(state: str) -> None:
    """A Trace can be sent, so its tracestate is checked."""
    with pytest.raises(ValueError, match="printable"):
        Trace(GOOD, state)


@pytest.mark.parametrize("sampled", [True, False])
def test_a_trace_and_its_children(*, sampled: bool) -> None:
    """Each position has another id; all have the trace id, the flags and the tracestate."""
    begun = Trace.begin(sampled=sampled)
    assert begun != Trace.begin(sampled=sampled)
    child = Trace(begun.traceparent, "a=b").child()
    assert (child.trace_id, child.sampled, child.tracestate) == (begun.trace_id, sampled, "a=b")
    assert child.parent_id != begun.parent_id


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_a_trace_of_three_hops(mode: Any) -> None:
    """The producer sets both, relays set the headers, and a consumer reads both."""
    event, headers = start_trace(EVENT)
    fake = FakeProducer()
    with EventProducer(fake, topic="a", mode=mode) as producer:
        producer.send(event, headers=headers)
    (message,) = fake.log
    record = Record.of(message)
    first = hop_trace(record)
    assert first is not None
    assert first == origin_trace(from_record(record))  # a single hop: both are the same
    for _ in range(2):
        hop = hop_trace(record)
        assert hop is not None
        record = to_record(from_record(record), like=with_hop_trace(record, hop.child()))
        assert [name for name, _ in record.headers].count("traceparent") == 1
    last = hop_trace(record)
    assert origin_trace(from_record(record)) == first
    assert last is not None
    assert last.trace_id == first.trace_id
    assert last.parent_id != first.parent_id
    assert from_record(record) == event


def test_a_started_trace_is_kept() -> None:
    """An event keeps its origin; the trace of the hop may be passed."""
    event, _ = start_trace(EVENT, Trace(GOOD, "a=b"))
    assert (event["traceparent"], event["tracestate"]) == (GOOD, "a=b")
    assert start_trace(event) == (event, [("traceparent", GOOD.encode()), ("tracestate", b"a=b")])
    other = Trace.begin()
    assert start_trace(event, other) == (event, [("traceparent", other.traceparent.encode())])
    odd = EVENT.replace(traceparent="of another kind")
    kept, headers = start_trace(odd)
    assert kept == odd
    assert origin_trace(odd) is None
    assert hop_trace(Record(headers=headers)) is not None


def test_middleware_may_set_the_origin() -> None:
    """Middleware may set the origin of an event to the trace of its hop."""
    record = with_hop_trace(to_record(EVENT), Trace(GOOD))
    event, _ = start_trace(from_record(record), hop_trace(record))
    assert origin_trace(event) == Trace(GOOD)


@each(
    ("headers", "state"),
    [
        ([("traceparent", GOOD.encode()), ("tracestate", b"a=b"), ("tracestate", b"c=d")], "a=b,c=d"),
        ([("tracestate", None), ("traceparent", GOOD.encode()), ("tracestate", b"")], None),
        ([("traceparent", GOOD.encode()), ("tracestate", b"\xff")], None),
    ],
)
def test_tracestates_are_joined_or_discarded(headers: Any, state: str | None) -> None:
    """Several tracestate headers are one list; an invalid one is discarded."""
    assert hop_trace(Record(headers=headers)) == Trace(GOOD, state)


@each(
    "headers",
    [
        [],
        [("ce_traceparent", GOOD.encode())],
        [("Traceparent", GOOD.encode())],
        [("traceparent", None)],
        [("traceparent", b"\xff")],
        [("traceparent", GOOD.encode()), ("traceparent", GOOD.encode())],
        [("tracestate", b"a=b")],
    ],
)
def test_headers_without_a_trace(headers: Any) -> None:
    """The attribute is not of a hop, and two traceparents are ambiguous."""
    assert hop_trace(Record(headers=headers)) is None


hostile = st.one_of(st.binary(max_size=60), st.just(GOOD.encode()), st.none())


@given(make.events(), st.lists(st.tuples(st.sampled_from(["traceparent", "tracestate", "x"]), hostile)))
@example(EVENT, [("traceparent", GOOD.encode()), ("tracestate", b"a=\x7f")])
def test_any_headers_have_a_trace_or_none(event: Event, headers: Any) -> None:
    """Any headers have a trace or none, and setting one keeps all other headers."""
    record = Record(headers=headers)
    hop = hop_trace(record)
    begun, _ = start_trace(event.replace(traceparent=None, tracestate=None), hop)
    assert origin_trace(begun) is not None
    assert hop is None or origin_trace(begun) == hop
    on = with_hop_trace(record, (hop or Trace.begin()).child())
    assert [h for h in on.headers if h[0] == "x"] == [h for h in headers if h[0] == "x"]
    assert hop_trace(on) is not None
    decode(on)


class KafkaHeaders(Getter[Any], Setter[Any]):
    """Access to a list of headers as in OpenTelemetry's instrumentation of Kafka clients."""

    def get(self, carrier: Any, key: str) -> list[str] | None:
        return [value.decode() for name, value in carrier if name == key] or None

    def keys(self, carrier: Any) -> list[str]:
        return [name for name, _ in carrier]

    def set(self, carrier: Any, key: str, value: str) -> None:
        carrier.append((key, value.encode()))


def test_opentelemetry_reads_our_traces_and_the_reverse() -> None:
    """OpenTelemetry's propagator reads our headers and carriers, and the reverse."""
    propagator = TraceContextTextMapPropagator()
    ours = Trace(GOOD, "a=b,c=d")
    record = with_hop_trace(to_record(EVENT), ours)
    for context in (
        propagator.extract(record.headers, getter=KafkaHeaders()),
        propagator.extract(ours.carrier()),
    ):
        span = otel.get_current_span(context).get_span_context()
        assert (f"{span.trace_id:032x}", f"{span.span_id:016x}") == (TRACE, SPAN)
        headers: list[tuple[str, bytes | None]] = []
        propagator.inject(headers, context=context, setter=KafkaHeaders())
        assert hop_trace(Record(headers=headers)) == ours
        carrier: dict[str, str] = {}
        propagator.inject(carrier, context=context)
        assert Trace.of(carrier) == ours


@each(
    ("carrier", "expected"),
    [
        ({}, None),
        ({"baggage": "a=b"}, None),
        ({"traceparent": "junk"}, None),
        ({"tracestate": "a=b"}, None),
        ({"traceparent": GOOD, "baggage": "a=b"}, Trace(GOOD)),
        ({"traceparent": GOOD, "tracestate": "a=b"}, Trace(GOOD, "a=b")),
        ({"traceparent": GOOD, "tracestate": ""}, Trace(GOOD)),
    ],
)
def test_any_carrier_is_read(carrier: dict[str, str], expected: Trace | None) -> None:
    """A carrier may be empty or have other keys, as outside of a span or with baggage."""
    assert Trace.of(carrier) == expected


@each(("flags", "kept"), [("00", "00"), ("01", "01"), ("02", "02"), ("03", "03"), ("ff", "03"), ("fc", "00")])
@each("version", ["00", "cc"])
def test_a_child_keeps_the_defined_flags(version: str, flags: str, kept: str) -> None:
    """The flags sampled and random are propagated (Trace Context level 2), others are 0."""
    trace = Trace(f"{version}-{TRACE}-{SPAN}-{flags}")
    child = trace.child()
    assert child.traceparent[53:] == kept
    assert (child.sampled, child.random) == (trace.sampled, trace.random)


def test_a_new_trace_has_the_random_flag() -> None:
    """All bytes of a new trace id are random, so the random flag is set."""
    assert [Trace.begin(sampled=sampled).traceparent[53:] for sampled in (False, True)] == ["02", "03"]
    assert Trace.begin().random


@each(
    ("state", "read"),
    [
        ("a=1,\tb=2", "a=1,b=2"),
        ("\ta=1 \t,\t b=2\t", "a=1,b=2"),
        ("a=1, b=2", "a=1, b=2"),
        ("a=1\t2", None),
        ("a=1\n", None),
        ("\t", None),
    ],
)
def test_tabs_around_members_of_a_tracestate_are_ignored(state: str, read: str | None) -> None:
    """Tabs around members are ignored (3.3.1.1); within a member they are an error."""
    headers = [("traceparent", GOOD.encode()), ("tracestate", state.encode())]
    assert hop_trace(Record(headers=headers)) == Trace(GOOD, read)
    event, _ = start_trace(EVENT, Trace.of({"traceparent": GOOD, "tracestate": state}))
    assert event.get("tracestate") == read
