"""`RecordCounts`: counts of the records in a topic or table, and samples of records that are not events."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.counting._labels import Labels
from cloudevents_kafka.counting._times import TimeHistogram
from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH
from cloudevents_kafka.record import Record

_Value = TypeVar("_Value", str, bytes, bytes | None)

NOT_EVENTS: Final = "(not events)"
"""The label in `RecordCounts.times` that stands for records that are not events."""

SAMPLES: Final = 3
"""The number of records that are stored for each verdict and clause."""
MOST_SAMPLED: Final = 40
"""The number of verdicts and clauses for which records are stored."""
MOST_HEADERS: Final = 10
"""The number of headers that are stored for each record."""
SAMPLE_BYTES: Final = 1 << 12
"""The number of characters or bytes that are stored for each text and value."""
CUT: Final = " …"
"""The mark at the end of a stored text that was cut; `mask_text` masks a login before this mark."""


class Sample(NamedTuple):
    """A stored record that is not an event: its shortened texts, the reason, and the size of its value."""

    reason: str
    record: Record
    size: int


@dataclass
class RecordCounts:
    """Counts of events and of other records, for a limited number of labels.

    Each label, such as a type of events, is cut to `MAX_KEY_LENGTH` characters.

    ``errors`` counts the records that are not valid events. Each label in ``errors`` consists of a verdict
    and the first broken clause, such as ``broken-event R-02``. ``samples`` contains a few records for each of
    these labels. ``tolerated`` counts the rules that leniently read events break. Its labels are clauses.
    ``sizes`` counts records by the number of bits in their size, and ``size`` is the sum of all sizes. The
    size of an event is the size of the event's data. For a record that is not an event, the size of the value
    is counted. ``times`` counts the timestamps of records by event type.
    """

    events: int = 0
    others: int = 0
    types: Labels[str] = field(default_factory=Labels)
    sources: Labels[str] = field(default_factory=Labels)
    modes: Labels[str] = field(default_factory=Labels)
    formats: Labels[str] = field(default_factory=Labels)
    keys: Labels[str] = field(default_factory=Labels)
    errors: Labels[str] = field(default_factory=Labels)
    tolerated: Labels[str] = field(default_factory=Labels)
    sizes: Counter[int] = field(default_factory=Counter)
    times: TimeHistogram = field(default_factory=TimeHistogram)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    without_key: int = 0
    size: int = 0

    def add(self, item: Decoded | Undecodable) -> None:
        """Count a record."""
        record = item.record
        if isinstance(item, Decoded):
            event = item.event
            type_, data = _label(event.type), event.payload
            self.events += 1
            self.types.add(type_)
            self.sources.add(_label(event.source))
            self.modes.add(item.mode)
            if item.format is not None:
                self.formats.add(item.format)
            for problem in item.tolerated:
                self.tolerated.add(problem.clause)
        else:
            type_, data = NOT_EVENTS, record.value
            self.others += 1
            error = " ".join((item.error.verdict, *item.error.clauses[:1]))
            self.errors.add(error)
            self.add_sample(error, item.error.reason, record, len(data or b""))
        self._add_record(type_, len(data or b""), record.key, record.timestamp)

    def _add_record(self, type_: str, size: int, key: bytes | None, timestamp: int | None) -> None:
        self.size += size
        self.sizes[size.bit_length()] += 1
        if key is None:
            self.without_key += 1
        else:
            self.keys.add(key_label(key))
        if timestamp is not None:
            self.times.add(timestamp, type_)

    def add_sample(self, error: str, reason: str, record: Record, size: int) -> None:
        """Store a record as a sample, unless enough samples with the same label are stored."""
        if error in self.samples or len(self.samples) < MOST_SAMPLED:
            samples = self.samples.setdefault(error, [])
            if len(samples) < SAMPLES:
                headers = [(_cut(name), _cut(value)) for name, value in record.headers[:MOST_HEADERS]]
                kept = replace(record, key=_cut(record.key), value=_cut(record.value), headers=headers)
                samples.append(Sample(_cut(reason), kept, size))


def _cut(value: _Value) -> _Value:
    if value is None or len(value) <= SAMPLE_BYTES:
        return value
    return value[:SAMPLE_BYTES] + (CUT if isinstance(value, str) else CUT.encode())


def key_label(key: bytes) -> str:
    """Return a key as text, or as hexadecimal digits if the key is not UTF-8."""
    try:
        return _label(key.decode())
    except UnicodeDecodeError:
        return _label(f"0x{key[:MAX_KEY_LENGTH].hex()}")


def _label(text: str) -> str:
    return text[:MAX_KEY_LENGTH]
