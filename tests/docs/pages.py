"""How the pages of docs are run: their blocks of Python, on a broker, and what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from cloudevents_kafka import EventProducer
from cloudevents_kafka.cli.records.json_lines import read_line
from cloudevents_kafka.cli.records.resolve import Overrides, resolve_line
from cloudevents_kafka.testing import LocalBroker

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TRY = DOCS / "try_these_pages.md"
# confluent-kafka's registry in the process, any free ports, and a broker that lets members join at once.
HERE = {
    "http://localhost:8081": "mock://",
    "start_http_server(9109": "start_http_server(0",
    '("127.0.0.1", 8086)': '("127.0.0.1", 0)',
    "idle_timeout=5": "idle_timeout=3",
}
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


def reads_orders(page: Path) -> bool:
    """Return whether the blocks of a page read the topic ``orders`` at ``localhost:9092``."""
    code = "".join(block.code for block in blocks(page))
    reads = re.search(r'topics=\["orders"\]|subscribe\(\["orders"\]|subscriber\(\s*"orders"', code)
    return "localhost:9092" in code and reads is not None


def topics(page: Path) -> set[str]:
    """Return the topics that the blocks of a page name."""
    return {"orders", *_TOPIC.findall("".join(block.code for block in blocks(page)))}


def run(page: Path, folder: Path, broker: LocalBroker | None) -> list[str]:
    """Run the blocks of a page as printed in a folder, and return what each prints.

    In place of ``localhost:9092`` they have the address of the broker, whose topic ``orders`` has the records
    of the page `TRY`. Topics and groups have the name of the page, too, since other pages use the broker at
    the same time.
    """
    if broker is None:
        return run_with(page, folder, {})
    names = {name: broker.create_topic(f"{name}-of-{page.stem}") for name in topics(page)}
    fill(broker.bootstrap_servers, names["orders"])
    replaced = {"localhost:9092": broker.bootstrap_servers}
    replaced |= {f'"{name}"': f'"{own}"' for name, own in names.items()}
    replaced |= {start: f"{start}{page.stem}-" for start in ('"group.id": "', 'group_id="')}
    printed = run_with(page, folder, replaced)
    for name, own in names.items():
        printed = [text.replace(own, name) for text in printed]
    return printed


def run_with(page: Path, folder: Path, replaced: dict[str, str]) -> list[str]:
    """Run the blocks of a page in a folder, with texts replaced by others, and return what each prints.

    They have any free port in place of those of their servers, and in place of ``localhost:8081`` the
    registry of confluent-kafka in the process.
    """
    replaced = {**HERE, **replaced}
    found = blocks(page)
    for block in found:
        if block.title:
            (folder / block.title).write_text(_replace(block.code, replaced), "utf-8")
    code = f"\nprint({MARK!r}, flush=True)\n".join(block.code for block in found if not block.title)
    (folder / "page.py").write_text(_WHOLE_LINES + _replace(code, replaced), "utf-8")
    printed = program(folder, "page.py")
    servers = replaced.get("localhost:9092", "localhost:9092")
    return printed.replace(servers, "localhost:9092").split(f"{MARK}\n")


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


def fill(servers: str, topic: str) -> None:
    """Send the records of the page `TRY`, as ``produce`` does."""
    lines = dict(titled(TRY))["orders.jsonl"].encode().splitlines()
    with EventProducer({"bootstrap.servers": servers}, topic=topic) as producer:
        for line in lines:
            producer.send_record(resolve_line(read_line(line), Overrides()))


def titled(page: Path) -> list[tuple[str, str]]:
    """Return the titles of the blocks of a page that have one, and their text."""
    return [(block[3], block[4]) for block in _BLOCK.finditer(page.read_text("utf-8")) if block[3]]


def check(page: Path, printed: list[str]) -> None:
    """Check that each block of a page printed what the page shows."""
    shown = [block.shown for block in blocks(page) if not block.title]
    for expected, output in zip(shown, printed, strict=True):
        assert expected is None or matches(expected, output), f"expected:\n{expected}\nprinted:\n{output}"


def matches(shown: str, printed: str) -> bool:
    """Return whether lines are in an output in their order, with others between them; … is any text."""
    rest = iter(printed.splitlines())
    patterns = (".*".join(map(re.escape, line.split("…"))) for line in shown.splitlines())
    return all(any(re.fullmatch(pattern, line) for line in rest) for pattern in patterns)
