"""How the pages of docs are run: their blocks of Python, on a broker, and what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from cloudevents_kafka import Event, EventProducer, Record
from cloudevents_kafka.testing import LocalBroker

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MARK = "-- end of a block --"
# Threads that print and log at the same time do not mix their lines.
_WHOLE_LINES = "import sys; sys.stdout.reconfigure(line_buffering=True, write_through=False)\n"
_BLOCK = re.compile(r'^```(\w+)( spark)?(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
# Topics that are read and written by name, as topic="…", topics=["…"] or subscribe(["…"]).
_TOPIC = re.compile(r'(?:topics?=|subscribe\()\[?"([\w.-]+)"')


class Block(NamedTuple):
    """A block of Python, its file if it has a title, and the output that the page shows after it, if any."""

    code: str
    title: str
    shown: str | None


def blocks(page: Path) -> list[Block]:
    """Return the blocks of Python of a page that need no session of Spark."""
    text = page.read_text("utf-8")
    found = []
    for block, after in pairwise([*_BLOCK.finditer(text), None]):
        assert block is not None
        language, spark, title, code = block.groups()
        if language == "python" and not spark:
            is_output = after and after[1] == "text" and not text[block.end() : after.start()].strip()
            found.append(Block(code, title or "", after[4] if after and is_output else None))
    return found


def python(page: Path) -> str:
    """Return the blocks of a page that have no title, one after the other."""
    return "\n".join(block.code for block in blocks(page) if not block.title)


def needs_broker(page: Path) -> bool:
    """Return whether the blocks of a page start a broker, or read and write at ``localhost:9092``."""
    code = "".join(block.code for block in blocks(page))
    return "LocalBroker()" in code or "localhost:9092" in code


def topics(page: Path) -> set[str]:
    """Return the topics that the blocks of a page name."""
    return {"orders", *_TOPIC.findall("".join(block.code for block in blocks(page)))}


def run(page: Path, folder: Path, broker: LocalBroker | None) -> list[str]:
    """Run the blocks of a page as printed in a folder, and return what each prints.

    In place of ``localhost:9092`` they have the address of the broker, whose topic ``orders`` has two events
    and another record, and in place of ``localhost:8081`` a schema registry in the process. Topics and groups
    have the name of the page, too, since other pages use the broker at the same time.
    """
    # confluent-kafka's registry in the process, and any free port.
    replaced = {"http://localhost:8081": "mock://", "start_http_server(9109": "start_http_server(0"}
    replaced['("127.0.0.1", 8086)'] = '("127.0.0.1", 0)'
    names: dict[str, str] = {}
    if broker is not None:
        names = {name: broker.create_topic(f"{name}-of-{page.stem}") for name in topics(page)}
        fill(broker, names["orders"])
        replaced["localhost:9092"] = broker.bootstrap_servers
        replaced["idle_timeout=5"] = "idle_timeout=3"  # this broker lets members join at once
        replaced |= {f'"{name}"': f'"{own}"' for name, own in names.items()}
        replaced |= {start: f"{start}{page.stem}-" for start in ('"group.id": "', 'group_id="')}
    found = blocks(page)
    for block in found:
        if block.title:
            (folder / block.title).write_text(_replace(block.code, replaced), "utf-8")
    code = f"\nprint({MARK!r}, flush=True)\n".join(block.code for block in found if not block.title)
    code = _replace(code, replaced)
    (folder / "page.py").write_text(_WHOLE_LINES + code, "utf-8")
    printed = program(folder, "page.py")
    for name, own in names.items():
        printed = printed.replace(own, name)
    if broker is not None:
        printed = printed.replace(broker.bootstrap_servers, "localhost:9092")
    return printed.split(f"{MARK}\n")


def _replace(text: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text


def program(folder: Path, *arguments: str) -> str:
    """Run Python to its end in a folder, and return all that it printed; if it fails, fail with that."""
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"},
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}"
    return done.stdout


def fill(broker: LocalBroker, topic: str) -> None:
    """Send two events, the data of one of which is odd, and a record that is not an event."""
    with EventProducer({"bootstrap.servers": broker.bootstrap_servers}, topic=topic) as producer:
        for number, total in (17, "9.50"), (18, "much"):
            data = {"order": number, "total": total}
            producer.send(Event(id=str(number - 16), source="/shop", type="order.placed", data=data))
        producer.send_record(Record(value=b"not an event"))


def matches(shown: str, printed: str) -> bool:
    """Return whether lines are in an output in their order, with others between them; … is any text."""
    rest = iter(printed.splitlines())
    patterns = (".*".join(map(re.escape, line.split("…"))) for line in shown.splitlines())
    return all(any(re.fullmatch(pattern, line) for line in rest) for pattern in patterns)
