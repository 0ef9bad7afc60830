"""The command lines on the pages of docs run, and print what the pages show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from cloudevents_kafka.jvm import find_java
from cloudevents_kafka.testing import LocalBroker
from tests.docs import pages

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (
    "how-to/dead_letters",
    "how-to/look_at_the_wire",
    "how-to/look_into_a_topic",
    "how-to/other_languages",
    "how-to/produce",
    "how-to/report",
    "operations",
    "security",
)
IN_EACH_RUN = {"how-to/dead_letters", "operations"}
SPARK_PAGES = (
    "how-to/connect_and_clusters",
    "how-to/delta_and_iceberg",
    "how-to/land_with_spark",
    "how-to/watch_a_pipeline",
)
_BLOCK = re.compile(r"^```(\w+)( spark)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r'^```python title="(.+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# What differs from run to run: times, in text and in milliseconds.
_TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+(Z|[+-]\d\d:\d\d)?|\b1[7-9]\d{11}\b")


class Step(NamedTuple):
    """A block of commands, and the output that the page shows after it, if any."""

    commands: str
    shown: str | None


def steps(page: str, mark: str = "") -> Iterator[Step]:
    """Yield the blocks of a page that have a mark."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    for block, after in pairwise([*_BLOCK.finditer(text), None]):
        assert block is not None
        if (block[1], block[2] or "") == ("sh", mark):
            is_output = (
                after and after[1] in {"text", "json"} and not text[block.end() : after.start()].strip()
            )
            yield Step(block[3], after[3] if after and is_output else None)


class Shell:
    """Runs blocks of commands in a folder, on a broker, with topics and groups that no other test has."""

    def __init__(self, broker: LocalBroker, page: str, folder: Path, *, seconds: float = 100) -> None:
        self._seconds = seconds
        self._servers = broker.bootstrap_servers
        self.topic = broker.create_topic(f"orders-{page.replace('/', '-')}")
        self._folder = folder
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}

    def run(self, commands: str, **environment: str) -> str:
        """Run a block and return what it prints; the first command that fails ends it."""
        commands = re.sub(r"\borders\b", self.topic, commands.replace("localhost:9092", self._servers))
        commands = commands.replace("--group billing", f"--group billing-{self.topic}")
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", commands],
            capture_output=True,
            text=True,
            timeout=self._seconds,
            check=False,
            cwd=self._folder,
            env={**self._environment, **environment},
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
        printed = done.stdout.replace(f"billing-{self.topic}", "billing").replace(self.topic, "orders")
        return printed.replace(self._servers, "localhost:9092")


def masked(text: str) -> list[str]:
    """Return the lines of a text without times, and without the widths of columns, which depend on names."""
    return [
        re.sub(r"( |-)\1+", r"\1", line.rstrip()) for line in _TIMES.sub("TIME", text).strip().splitlines()
    ]


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in IN_EACH_RUN else pytest.mark.release) for page in PAGES]
)
def test_commands_run(page: str, kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """Each block runs without an error, and prints what the page shows, but for times."""
    shell = Shell(kafka_broker, page, tmp_path)
    if pages.reads_orders(DOCS / f"{page}.md"):
        pages.fill(kafka_broker.bootstrap_servers, shell.topic)
    for topic in f"copy-of-{shell.topic}", f"{shell.topic}.dead":
        kafka_broker.create_topic(topic)
    blocks = list(steps(page))
    assert blocks
    for commands, shown in blocks:
        printed = shell.run(commands)
        if shown is not None:
            assert masked(printed) == masked(shown)


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.release  # the demo runs a pipeline in each run
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", SPARK_PAGES)
def test_commands_of_spark_run(page: str, kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """Each block runs without an error on three events and a bad record; a cluster is this machine."""
    shell = Shell(kafka_broker, page, tmp_path, seconds=400)
    shell.run(f"python {ROOT}/examples/emit.py localhost:9092 orders")
    bad = json.dumps({"value": "not an event"})
    shell.run(f"cloudevents-kafka produce -b localhost:9092 -t orders <<< '{bad}'")
    for name, code in _FILE.findall((DOCS / f"{page}.md").read_text("utf-8")):
        (tmp_path / name).write_text(code, "utf-8")
    for commands, _ in steps(page, " spark"):
        here = commands.replace("spark://localhost:7077", "local[2]").replace("/data/", f"{tmp_path}/")
        java, python = str(find_java().home), sys.executable
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short runs do not benefit from more optimization
        settings = {"JAVA_HOME": java, "JDK_JAVA_OPTIONS": quick, "PYSPARK_PYTHON": python}
        shell.run(here, SPARK_LOCAL_IP="127.0.0.1", **settings)
