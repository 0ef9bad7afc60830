"""The Python of the pages of docs runs as printed, with a real broker if it needs one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from cloudevents_kafka.testing import LocalBroker
from tests.docs import pages
from tests.support.cases import each

FAKES = re.compile(r"\bFake\w+|test\.mock")
FRAMEWORKS = {"fastapi", "faststream"}  # each has a page of its name
HOW_TO = [page for page in pages.PAGES if page.parent.name == "how-to"]
LONG = {"asyncio", "logging", "look_at_the_wire", "registry_data"}
"""Pages that take a second of a processor or more; the others are their sample."""


@pytest.fixture(scope="session")
def printed(
    kafka_broker: LocalBroker, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future[list[str]]]]:
    """Run the pages that need a broker, four at a time, as they mostly wait for records."""
    asked = [
        item.callspec.params["page"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == "test_pages_run"
    ]
    here = [page for page in asked if page.stem not in FRAMEWORKS or find_spec(page.stem)]
    with ThreadPoolExecutor(4) as pool:
        yield {
            page: pool.submit(pages.run, page, tmp_path_factory.mktemp(page.stem), kafka_broker)
            for page in here
            if pages.needs_broker(page)
        }


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[pytest.mark.spark] * ("kafka.spark " in pages.python(page))
            + [pytest.mark.broker] * pages.needs_broker(page)
            + [pytest.mark.release] * (page.stem in LONG),
        )
        for page in pages.PAGES
        if pages.python(page)
    ],
    ids=lambda page: page.stem,
)
def test_pages_run(page: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The blocks of a page run one after the other, and print what the page shows."""
    if page.stem in FRAMEWORKS:
        pytest.importorskip(page.stem)
    if pages.needs_broker(page):
        printed = request.getfixturevalue("printed")[page].result()
    else:
        printed = pages.run(page, tmp_path, None)
    pages.check(page, printed)


@pytest.mark.release  # the page testing runs in each run
@pytest.mark.broker
def test_the_test_on_a_page_passes(tmp_path: Path) -> None:
    """The tests that pages show pass, in a folder of their own."""
    for page in HOW_TO:
        for block in pages.blocks(page):
            if block.title.startswith("test_"):
                (tmp_path / block.title).write_text(block.code, "utf-8")
    found = len(list(tmp_path.iterdir()))
    output = pages.program(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert found
    assert f"{found} passed" in output


@each("page", HOW_TO, ids=lambda page: page.stem)
def test_a_page_begins_with_the_code_of_a_service(page: Path) -> None:
    """A page has its first block before its first heading, and fakes are on the page about tests only."""
    text = page.read_text("utf-8")
    first = text.partition("\n## ")[0]
    assert "\n```" in first, "the first block must be before the first heading"
    assert page.stem == "testing" or not FAKES.search(text)


# The line that a page is about.
ABOUT = {
    "asyncio": "await events.run(",
    "consume": "for item in events",
    "convert": "to_record(event)",
    "dead_letters": "events.run(",
    "exactly_once": "EventProcessor(events",
    "extensions": "partitionkey=",
    "fastapi": "async with AsyncEventProducer(",
    "faststream": "return decode(",
    "health": "events.health()",
    "logging": "logging.basicConfig(",
    "metrics": "PrometheusObserver()",
    "other_languages": "lenient=True",
    "produce": "producer.send(event)",
    "registry_data": "serialize_data(event",
    "testing": "FakeProducer()",
    "tracing": "OpenTelemetryObserver()",
    "tombstones": "producer.send_record(",
    "typed_data": "data_type=Order",
    "what_an_event_needs": "event = Event(",
    "which_loop": "events.run(",
}


@each(("name", "line"), ABOUT.items())
def test_a_page_comes_to_its_point(name: str, line: str) -> None:
    """At most eight lines are before the line that the page is about."""
    first = pages.blocks(pages.DOCS / "how-to" / f"{name}.md")[0].code
    before, found, _ = first.partition(line)
    assert found
    assert len([text for text in before.splitlines() if text.strip()]) <= 9  # with the line itself


@each("page", HOW_TO, ids=lambda page: page.stem)
def test_a_page_says_what_can_go_wrong(page: Path) -> None:
    """Each page has a section about it, with messages as they are printed."""
    section = page.read_text("utf-8").partition("\n## What can go wrong\n")[2].partition("\n## ")[0]
    assert re.search(r"^\| (?:`|The|A)", section, re.MULTILINE), "a table of messages"


@each("page", pages.PAGES, ids=lambda page: page.relative_to(pages.DOCS).as_posix())
def test_a_page_reads_nothing_of_a_checkout(page: Path) -> None:
    """A reader who has installed the package can run the page."""
    code = "\n".join(block.code for block in pages.blocks(page))
    assert "spec-conformance" not in code


@each("page", pages.PAGES, ids=lambda page: page.relative_to(pages.DOCS).as_posix())
def test_links_inside_the_project_are_relative(page: Path) -> None:
    """So they lead to the same version, on the site and in a checkout."""
    assert not re.findall(r"/cloudevents-kafka/(?:blob|tree)/\S*", page.read_text("utf-8"))
