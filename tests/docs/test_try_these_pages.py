"""The page about trying pages makes a topic from which their outputs follow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from cloudevents_kafka.testing.local import free_ports
from tests.docs import pages
from tests.support.cases import each

READERS = [page for page in pages.PAGES if pages.reads_orders(page)]
SAMPLE = pages.DOCS / "index.md"


@contextmanager
def broker_and_records(folder: Path) -> Iterator[str]:
    """Return a context manager for what the page's commands make; its value is the broker's address."""
    blocks = dict(pages.titled(pages.TRY))
    (port,) = free_ports(1)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(pages.ROOT)}
    start = blocks["terminal 1"].replace("9092", str(port))
    broker = subprocess.Popen(
        ["bash", "-c", f"exec {start}"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert broker.stdout is not None
        servers = broker.stdout.readline().strip()
        assert servers == f"127.0.0.1:{port}"
        (folder / "orders.jsonl").write_text(blocks["orders.jsonl"], "utf-8")
        send = blocks["terminal 2"].replace("localhost:9092", servers)
        subprocess.run(["bash", "-c", send], cwd=folder, env=environment, timeout=100, check=True)
        yield servers
    finally:
        broker.send_signal(signal.SIGINT)
        broker.communicate(timeout=100)


def test_nine_how_to_pages_and_the_front_page_read_the_topic() -> None:
    """At least those, so that the next tests are about pages that exist."""
    assert SAMPLE in READERS
    assert len([page for page in READERS if page.parent.name == "how-to"]) >= 9


@each("page", READERS, ids=lambda page: page.stem)
def test_a_page_that_reads_the_topic_has_a_link(page: Path) -> None:
    """The link stands below the first block of the page or its output."""
    place = Path(os.path.relpath(pages.TRY, page.parent)).as_posix()
    before = page.read_text("utf-8").partition("\n## ")[0]
    assert f"({place})" in before


@pytest.mark.broker
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page == SAMPLE else pytest.mark.release) for page in READERS],
    ids=lambda page: page.stem,
)
def test_its_output_follows_from_an_empty_broker(page: Path, tmp_path: Path) -> None:
    """On a new broker with the records, with its own names, a page prints what it shows."""
    if page.stem in {"fastapi", "faststream"} and find_spec(page.stem) is None:
        pytest.skip(f"{page.stem} is not installed")
    with broker_and_records(tmp_path) as servers:
        pages.check(page, pages.run_with(page, tmp_path, {"localhost:9092": servers}))
