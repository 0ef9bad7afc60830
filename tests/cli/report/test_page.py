"""The page of ``report`` is HTML of our own elements, in which text of others is text, of at most 1 MB."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudevents_kafka import Record
from cloudevents_kafka.cli.kafka.lag import Lag
from cloudevents_kafka.cli.report.page import PageContents, to_html
from cloudevents_kafka.counting import RecordCounts
from cloudevents_kafka.counting._records import key_label
from tests.support import sample_report
from tests.support.strategies import examples

ELEMENTS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "section",
        "article",
        "div",
        "h1",
        "h2",
        "h3",
    ),
    *("dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "i", "figure"),
    *("details", "summary", "svg", "g", "rect", "path", "text"),
}
ATTRIBUTES = {
    *("charset", "http-equiv", "content", "name", "lang", "scope", "class", "role", "aria-label"),
    *("viewbox", "d", "x", "y", "width", "height", "transform"),
}
VOID = {"meta"}
NASTY = st.sampled_from(
    [
        *("<script>alert(1)</script>", "]]>", "</style><style>", "<!--", "-->", "</title>", "<![CDATA["),
        *('"><img src=x onerror=x>', "&lt;", "&#x3c;b>", "\x00", "\x1b[31m", "\x85", "\u202e", "\u2028"),
        *("\ud800", "\udfff", "\ufffe", "\uffff"),
    ]
)
TEXTS = st.lists(NASTY | st.text(st.characters(codec=None), max_size=20), max_size=4).map("".join)


class Page(HTMLParser):
    """The elements, attributes and texts of a page; raises an error if elements are not nested."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.elements, self.attributes, self.texts, self.open, self.policy = [], [], [], [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [name for name, _ in attrs]
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data):
        raise AssertionError(data)

    def handle_pi(self, data):
        raise AssertionError(data)

    def unknown_decl(self, data):
        raise AssertionError(data)


@st.composite
def reports(draw):
    counts = RecordCounts()
    for text in draw(st.lists(TEXTS, max_size=5)):
        for labels in (
            counts.types,
            counts.sources,
            counts.modes,
            counts.formats,
            counts.keys,
            counts.tolerated,
        ):
            labels.add(text)
        counts.errors.add(text)
        counts.times.add(draw(st.integers(-(2**63), 2**63 - 1)), text)
        counts.sizes[draw(st.integers(0, 40))] += 1
        raw = text.encode("utf-8", "surrogatepass")
        counts.add_sample(text, text, Record(key=raw, value=raw, headers=[(text, raw)], topic=text), 1)
    counts.events, counts.others = counts.types.total, counts.errors.total
    lags = draw(st.lists(st.builds(Lag, TEXTS, st.integers(0, 2**63), st.integers(0, 2**63)), max_size=3))
    return PageContents(draw(TEXTS), draw(st.lists(st.tuples(TEXTS, TEXTS), max_size=3)), counts, lags)


@given(reports())
@examples(40)
def test_text_of_others_is_never_markup(report):
    """For any records the page has our own elements and attributes, also inside its drawings."""
    html = to_html(report)
    page = Page(html)
    assert set(page.elements) <= ELEMENTS
    assert set(page.attributes) <= ATTRIBUTES
    assert page.elements.count("style") == page.elements.count("html") == page.elements.count("body") == 1
    text = "".join(text for _, text in page.texts)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]", text)
    html.encode()


def test_text_of_others_is_shown():
    """A type that resembles markup is shown as it is."""
    counts = RecordCounts(events=1)
    counts.types.add("<b>]]>&amp;\u202e")
    assert ("span", "<b>]]>&amp;\\u202e") in Page(to_html(PageContents("t", [], counts))).texts


def test_a_page_loads_and_runs_nothing():
    """The policy forbids all but the style of the page, and nothing in the page asks for more."""
    html = to_html(sample_report.usual())
    page = Page(html)
    (style,) = [text for element, text in page.texts if element == "style"]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert page.policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert not re.search(r"url\(|@import|https?:|src=|href=|javascript|\bon\w+=", html)


@pytest.mark.parametrize("names", [300, 3000])
def test_a_page_has_at_most_1_mb(names):
    """Many names, long names and large values make no large page; it says how much was cut."""
    html = to_html(sample_report.hostile(names))
    assert 100_000 < len(html.encode()) < 1_000_000
    assert re.search(r"… and \d+ more", html)
    assert "400,000 bytes" in html
    assert "(others)" in html


def test_secrets_are_masked():
    """Credentials in names, headers, keys and values are masked; other data is not."""
    counts = RecordCounts(events=1, others=1)
    counts.sources.add("https://user:hunter2@host/path")
    headers = [("authorization", b"hunter2"), ("note", b"password=hunter2")]
    value = b'{"total": 12, "client_secret": "hunter2"}'
    counts.errors.add("broken-event")
    counts.add_sample("broken-event", "sasl.password=hunter2", Record(value=value, headers=headers), 41)
    html = to_html(PageContents("Topic", [("brokers", "kafka://me:hunter2@host")], counts))
    assert "hunter2" not in html
    assert html.count("********") >= 6
    assert "total" in html


@pytest.mark.parametrize("start", ["https://user:", "token="])
def test_secrets_that_are_cut_are_masked(start):
    """A long secret of which only the start is kept is masked, too."""
    text = f"{start}{'hunter2' * 2000}@host"
    record = Record(key=text.encode(), value=text.encode(), headers=[("x", text.encode())])
    counts = RecordCounts(events=1, others=1)
    counts.keys.add(key_label(text.encode()))
    counts.errors.add("broken-event")
    counts.add_sample("broken-event", text, record, len(text))
    assert "hunter" not in to_html(PageContents("Topic", [], counts))


def test_figures_have_tables_and_titles():
    """Each drawing has a title for those who do not see it, and a table with its numbers next to it."""
    page = Page(to_html(sample_report.usual()))
    headings = [text for element, text in page.texts if element in {"h1", "h2"}]
    assert headings == [
        *("Topic orders", "Events over time", "Sizes", "Lag", "Other records"),
        *("Sources", "Content modes", "Event formats", "Keys"),
    ]
    assert page.elements.count("svg") == page.elements.count("figure") == 4
    assert page.elements.count("table") == page.elements.count("caption") == 8
    assert "records by type and timestamp" in " ".join(text for _, text in page.texts).lower()
    assert page.attributes.count("aria-label") == page.attributes.count("role") == 4


def _luminance(color):
    channels = [int(part, 16) / 255 for part in re.findall("..", color)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", [0, 1])
def test_contrast(mode):
    """Text has a contrast of 4.5 to the page (WCAG 1.4.3), drawings of 3 (1.4.11), in light and in dark."""
    html = to_html(sample_report.usual())
    found = re.findall(r":root \{(.*?)\}", html, re.DOTALL)[mode]
    colors = dict(re.findall(r"--(\w+): #(\w+)", found))
    colors = {name: color if len(color) == 6 else color * 2 for name, color in colors.items()}
    page = _luminance(colors.pop("page"))
    for name, color in colors.items():
        light, dark = sorted((page, _luminance(color)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= (4.5 if name in {"ink", "soft"} else 3), name


def test_an_empty_report_is_a_page():
    """A topic without records has a page that says so."""
    assert "0 events and 0 other records" in to_html(PageContents("Topic t", [], RecordCounts()))


def test_drawing_changes_no_import():
    """Drawing leaves no finder of modules behind that Python 3.11 cannot ask without a warning."""
    to_html(sample_report.usual())
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)
