"""The messages that pages show are those of the package."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

import cloudevents_kafka
from cloudevents_kafka import Event, EventConsumer, EventProducer, Record, from_record
from cloudevents_kafka.testing import FakeProducer
from tests.docs import pages
from tests.support.cases import each

PACKAGE = Path(cloudevents_kafka.__file__).parent
# Messages of other programs.
FOREIGN = re.compile(
    r"Broker: |Local: |librdkafka|^Kafka|^Confluent|^503|Connection refused"
    "|^Unicode|^No module|^Duplicated|^ModuleNot|^Analysis"
)
HOW_TO = [page for page in pages.PAGES if page.parent.name == "how-to"]


@cache
def texts() -> list[set[tuple[str, str]]]:
    """Return the pairs of neighbouring words of each text literal of the package, but for its values."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                found.append({pair for part in parts for pair in pairs(part)})
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                found.append(set(pairs(node.value)))
    return found


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the pairs of neighbouring words of a text."""
    return list(pairwise(re.findall(r"[\w.=']+", text)))


def share(message: str) -> float:
    """Return the largest share of a message that is in one literal of the package, as pairs of words."""
    found = {pair for part in re.split("…|: |; |'[^']*'", message) for pair in pairs(part)}
    return max(len(found & literal) for literal in texts()) / max(1, len(found))


def messages(page: Path) -> list[str]:
    """Return the messages in the first column of the tables about what can go wrong."""
    section = page.read_text("utf-8").partition("\n## What can go wrong\n")[2].partition("\n## ")[0]
    return [
        message for message in re.findall(r"^\| `([^`]+ [^`]+)`", section, re.MULTILINE) if len(message) > 20
    ]


@each("page", HOW_TO, ids=lambda page: page.stem)
def test_pages_have_messages_of_the_package(page: Path) -> None:
    """A message on a page is made of texts of the package, but for names and values."""
    shown = [message for message in messages(page) if not FOREIGN.search(message)]
    assert [message for message in shown if share(message) < 0.25] == []


CALLS = {
    "produce": (
        lambda: Event(id="", source="/shop", type="t"),
        lambda: Event(id="1", source="/s", type="t", data={}, datacontenttype="application/avro"),
        lambda: EventProducer(FakeProducer()).send({}),
        lambda: EventProducer(FakeProducer()).send(Event(id="1", source="/s", type="t")),
        lambda: EventProducer(FakeProducer()).send(
            Event(id="1", source="/s", type="t"), "orders", headers={"ce_id": "2"}
        ),
        lambda: EventProducer({"bootstrap.server": "127.0.0.1:1"}),
        lambda: EventProducer(Producer),
    ),
    "consume": (
        lambda: EventConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}, topics="orders"),
        lambda: EventConsumer({"bootstrap.servers": "127.0.0.1:1", "enable.auto.commit": True}),
        lambda: EventConsumer({"bootstrap.servers": "127.0.0.1:1", "group.ip": "g"}),
        lambda: EventConsumer(Consumer),
        lambda: Event(id="1", source="/s", type="t", data=b"{", datacontenttype="application/json").data,
    ),
    "tombstones": (lambda: from_record(Record(key=b"17", topic="orders", partition=0, offset=1)),),
}


@each(("page", "call"), [(page, call) for page, calls in CALLS.items() for call in calls])
def test_messages_are_as_printed(page, call):
    """What a call prints when it fails is on its page, where … is any text."""
    try:
        failed = call()
    except Exception as error:  # noqa: BLE001
        printed = f"{type(error).__name__}: {error}"
    else:
        pytest.fail(f"it did not fail, but returned {failed}")
    shown = messages(pages.DOCS / "how-to" / f"{page}.md")
    patterns = [".*".join(map(re.escape, message.split("…"))) for message in shown]
    assert any(re.search(pattern, printed) for pattern in patterns), printed
