"""The HTML page about records: figures, tables and samples.

Long lists are cut, so that the page has at most 1 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Final, Literal, NamedTuple
from xml.etree import ElementTree as ET

from cloudevents_kafka.cli.kafka.lag import Lag
from cloudevents_kafka.cli.records.output import timestamp_text
from cloudevents_kafka.cli.report.figures import bars
from cloudevents_kafka.cli.report.html import document, h, shown
from cloudevents_kafka.counting import NOT_EVENTS, Labels, RecordCounts, Sample
from cloudevents_kafka.primitives.bounded import OTHERS
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.redaction import MASK, is_secret_name

_ROWS: Final = 40  # rows of a table
_BARS: Final = 48
_COLORS: Final = 8  # one for each of the most frequent types, and one for all others
_KINDS: Final = 12  # errors whose records have samples
_HEADERS: Final = 6  # headers of a sample
# Units for the width of bars: milliseconds, name, and the part of a time's text that is shown.
_UNITS: Final = (
    (86_400_000, "day", slice(10)),
    (3_600_000, "hour", slice(5, 16)),
    (60_000, "minute", slice(5, 16)),
    (1000, "second", slice(11, 19)),
)
_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class PageContents(NamedTuple):
    """The contents of the page: title, names and texts that describe the source, counts, and lags."""

    title: str
    facts: Sequence[tuple[str, str]]
    counts: RecordCounts
    lags: Sequence[Lag] = ()

    @property
    def records(self) -> str:
        """The numbers of events and of other records, as text."""
        others = pluralize(self.counts.others, "other record")
        return f"{pluralize(self.counts.events, 'event')} and {others}"


def to_html(report: PageContents) -> str:
    """Return the HTML page for the contents of a report."""
    style = files("cloudevents_kafka.cli.report").joinpath("page.css").read_text("utf-8")
    facts = (*report.facts, ("records", report.records))
    about = _facts([(shown(name), shown(text)) for name, text in facts])
    parts = (*_times(report.counts), *_sizes(report.counts), *_lags(report.lags), *_labels(report.counts))
    return document(shown(report.title), style, h("h1", shown(report.title)), about, *parts)


def _facts(facts: Sequence[tuple[str, str]]) -> ET.Element:
    return h("dl", *(h(tag, text) for fact in facts for tag, text in zip(("dt", "dd"), fact, strict=True)))


def _section(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[ET.Element | str | int]],
    note: str,
    drawing: ET.Element | Literal["rows", "columns"] | None = None,
) -> ET.Element:
    """Return a section of the page with a table; unless ``drawing`` is None, also with a drawing.

    If ``drawing`` is "rows" or "columns", each bar of the drawing shows the last cell of a row.
    """
    if drawing in {"rows", "columns"}:
        values = [int(str(row[-1])) for row in rows]
        drawing = bars(note, [str(row[0]) for row in rows], [values], rows=drawing == "rows")
    head = h("thead", h("tr", *(h("th", name, scope="col") for name in header)))
    texts = ([f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows)
    body = (h("tr", h("th", first, scope="row"), *(h("td", cell) for cell in rest)) for first, *rest in texts)
    table = h("table", h("caption", note), head, h("tbody", *body))
    figures = [h("figure", drawing)] if isinstance(drawing, ET.Element) else []
    return h("section", h("h2", title), h("div", *figures, table, class_="pair"))


def _ranked(labels: Labels[str], number: int = _ROWS) -> list[tuple[str, int]]:
    found, others = labels.most_common(number)
    return [*found, *([(OTHERS, others)] if others else [])]


def _times(counts: RecordCounts) -> Iterator[ET.Element]:
    window = counts.times.window(_BARS)
    ranked = [*_ranked(counts.types, _COLORS - 1), *([(NOT_EVENTS, counts.others)] if counts.others else [])]
    colors = {name: n for n, (name, _) in enumerate(ranked) if name != OTHERS} | {NOT_EVENTS: _COLORS}
    series = [[0] * len(window.bins) for _ in range(_COLORS + 1)]
    for number, labels in enumerate(window.bins):
        for name, count in _ranked(labels):
            series[colors.get(name, _COLORS - 1)][number] += count
    marks = (h("i", class_=f"color-{colors.get(name, _COLORS - 1)}") for name, _ in ranked)
    rows = [(h("span", mark, shown(name)), n) for mark, (name, n) in zip(marks, ranked, strict=True)]
    size, unit, part = next(found for found in _UNITS if window.width % found[0] == 0)
    note = f"Records by type and timestamp in UTC; each bar covers {pluralize(window.width // size, unit)}"
    away = f"; {window.before:,} are earlier, {window.after:,} later" if window.before or window.after else ""
    times = [timestamp_text(window.start + number * window.width) for number in range(len(window.bins))]
    starts = [time[part].replace("T", " ") if "T" in time else time for time in times]
    if ranked:
        yield _section(
            "Events over time",
            ("type", "records"),
            rows,
            note + away,
            bars(note, starts, series) if starts else None,
        )


def _sizes(counts: RecordCounts) -> Iterator[ET.Element]:
    if counts.sizes:
        span = range(min(counts.sizes), max(counts.sizes) + 1)
        rows = [(f"< {1 << bits % 10} {_BYTES[bits // 10]}", counts.sizes[bits]) for bits in span]
        note = f"Records by the size of their data, {counts.size:,} bytes in all"
        yield _section("Sizes", ("size", "records"), rows, note, "columns")


def _lags(lags: Sequence[Lag]) -> Iterator[ET.Element]:
    if lags:
        most = sorted(lags, key=lambda lag: -lag.behind)[:_ROWS]
        rows = [(shown(lag.partition), lag.next_offset, lag.end, lag.behind) for lag in most]
        total = f"{sum(lag.behind for lag in lags):,} offsets behind in {pluralize(len(lags), 'partition')}"
        note = f"{total}, and the table shows {len(most)} of them"
        yield _section("Lag", ("partition", "next offset", "end", "behind"), rows, note, "rows")


def _labels(counts: RecordCounts) -> Iterator[ET.Element]:
    keys = f"{counts.keys.total:,} records have a key, {counts.without_key:,} have no key"
    for title, name, labels, note in (
        ("Other records", "error", counts.errors, "Records that are not events, by verdict and clause"),
        ("Tolerated deviations", "clause", counts.tolerated, "Rules that events break, by clause"),
        ("Sources", "source", counts.sources, "Events by source"),
        ("Content modes", "mode", counts.modes, "Events by content mode"),
        ("Event formats", "format", counts.formats, "Events in structured mode by format"),
        ("Keys", "key", counts.keys, keys),
    ):
        if labels.total:
            rows = [(shown(label), number) for label, number in _ranked(labels)]
            yield _section(title, (name, "records"), rows, note, "rows" if labels is counts.errors else None)
        for error, _ in _ranked(labels)[:_KINDS] if labels is counts.errors else ():
            if samples := counts.samples.get(error):
                yield h("details", h("summary", f"Samples of {shown(error)}"), *map(_sample, samples))


def _sample(sample: Sample) -> ET.Element:
    record = sample.record
    facts = [("reason", shown(sample.reason, 300)), ("key", _bytes_text(record.key, 120))]
    for name, value in record.headers[:_HEADERS]:
        facts.append((f"header {shown(name, 40)}", MASK if is_secret_name(name) else _bytes_text(value, 80)))
    if len(record.headers) > _HEADERS:
        facts.append(("headers", "and more"))
    facts.append((pluralize(sample.size, "byte"), _bytes_text(record.value, 300)))
    return h("article", h("h3", shown(record.where)), _facts(facts))


def _bytes_text(value: bytes | None, longest: int) -> str:
    return "null" if value is None else shown(value.decode("utf-8", "backslashreplace"), longest)
