"""Records are counted as they are decoded, in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.binding import decode
from cloudevents_kafka.counting import CUT, MOST_HEADERS, NOT_EVENTS, SAMPLES, RecordCounts
from cloudevents_kafka.counting._records import MOST_SAMPLED, SAMPLE_BYTES, key_label
from tests.support.cases import each
from tests.support.strategies import hostile_records as records


def counts_of(*records, lenient=False):
    counts = RecordCounts()
    for record in records:
        counts.add(decode(record, lenient=lenient))
    return counts


def event(type_="t", mode="binary", **options):
    return to_record(Event(id="1", source="/s", type=type_, data=b"1234"), mode=mode, **options)


def top(labels):
    return dict(labels.most_common(9)[0])


def test_events_and_other_records():
    """Events are counted by type, source, mode and format; other records by verdict and clause."""
    broken = Record(
        value=b"123",
        headers=[("ce_specversion", b"1.0"), ("ce_id", b""), ("ce_source", b"/"), ("ce_type", b"t")],
    )
    counts = counts_of(event(), event("u", "structured", key="k"), broken, Record(value=None, key=b"\xff"))
    assert (counts.events, counts.others, counts.without_key) == (2, 2, 2)
    assert top(counts.types) == {"t": 1, "u": 1}
    assert top(counts.sources) == {"/s": 2}
    assert top(counts.modes) == {"binary": 1, "structured": 1}
    assert top(counts.formats) == {"json": 1}
    assert top(counts.keys) == {"k": 1, "0xff": 1}
    assert top(counts.errors) == {"broken-event R-02": 1, "not-an-event K-11": 1}
    assert (counts.sizes, counts.size) == ({3: 2, 2: 1, 0: 1}, 11)
    assert [sample.record for sample in counts.samples["broken-event R-02"]] == [broken]


def test_tolerated_deviations_are_counted_by_clause():
    """What was read leniently is an event of its mode, and the clause that it breaks is counted."""
    headers = [
        (f"CE-{name}", value) for name, value in [("specversion", b"1.0"), ("id", b"1"), ("source", b"/")]
    ]
    record = Record(value=b"", headers=[*headers, ("CE-type", b"t")])
    assert counts_of(record).events == 0
    counts = counts_of(record, lenient=True)
    assert (counts.events, top(counts.modes)) == (1, {"binary": 1})
    assert counts.tolerated.total >= 1


@given(st.lists(records(), max_size=20))
def test_any_records_are_counted(found):
    """Each record is counted once, and labels of all kinds come to as many."""
    counts = counts_of(*found)
    assert counts.events + counts.others == len(found)
    assert counts.types.total == counts.sources.total == counts.modes.total == counts.events
    assert counts.errors.total == counts.others
    assert sum(counts.sizes.values()) == len(found) == counts.keys.total + counts.without_key


def test_times_are_by_type():
    """Timestamps are counted by the type of the event, or as those of other records."""
    counts = counts_of(Record(value=b"", timestamp=5000), Record(value=b""))
    ((time, labels),) = counts.times.bins()
    assert (time, top(labels)) == (5000, {NOT_EVENTS: 1})


def test_few_samples_are_kept():
    """Of many errors and large values little is kept."""
    counts, large = RecordCounts(), bytes(SAMPLE_BYTES + 1)
    record = Record(key=large, value=large, headers=[("h" * 9000, large)] * 100)
    for number in range(10 * MOST_SAMPLED):
        for _ in range(2 * SAMPLES):
            counts.add_sample(f"error {number}", "why", record, SAMPLE_BYTES + 1)
    assert len(counts.samples) == MOST_SAMPLED
    assert {len(samples) for samples in counts.samples.values()} == {SAMPLES}
    kept = counts.samples["error 0"][0].record
    cut = large[:-1] + CUT.encode()
    assert (kept.key, kept.value) == (cut, cut)
    assert kept.headers == [("h" * SAMPLE_BYTES + CUT, cut)] * MOST_HEADERS


@each("key", [b"x" * 1000, b"\xff" * 1000, "ä".encode() * 1000])
def test_labels_are_cut(key):
    """A long key is cut."""
    assert len(key_label(key)) == 256
