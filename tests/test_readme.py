"""README's snippets and all examples run, with a real broker if they need one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cloudevents_kafka.testing import LocalBroker

ROOT = Path(__file__).parents[1]


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Return the language, the mark " spark" if there is one, and the code of each block of a page."""
    return re.findall(r"^```(\w+)( spark)?\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def python(page: Path) -> str:
    """Return the Python blocks of a page, one after the other."""
    return "\n".join(code for language, spark, code in blocks(page) if language == "python" and not spark)


BLOCKS = blocks(ROOT / "README.md")
SPARK = {language: code.strip() for language, spark, code in BLOCKS if spark}
SHELL = [
    line
    for language, spark, code in BLOCKS
    if language == "sh" and not spark
    for line in code.splitlines()
    if line.startswith("cloudevents-kafka")
]


# Characters of a line of code that GitHub shows at once in a window of 1,280 pixels.
WIDTH = 97


def test_no_code_of_the_readme_scrolls():
    """GitHub shows each line of code completely on a desktop."""
    assert [line for _, _, code in BLOCKS for line in code.splitlines() if len(line) > WIDTH] == []


# Short runs of Java do not benefit from more optimization.
QUICK_JAVA = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def run(*argv: str) -> str:
    """Run a program to its end and return its output; if it fails, fail with all that it printed."""
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT,
        env={**os.environ, **QUICK_JAVA},
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.broker
def test_readme_snippets_run(kafka_broker: LocalBroker) -> None:
    """All Python snippets run in order; only the broker's address differs."""
    kafka_broker.create_topic("orders")
    code = python(ROOT / "README.md").replace("localhost:9092", kafka_broker.bootstrap_servers)
    output = run(sys.executable, "-c", code.replace("idle_timeout=10", "idle_timeout=6"))
    assert output == "order.placed {'total': '9.50'}\n"


def test_readme_is_complete_on_its_own() -> None:
    """README is short, and its links are absolute, so that PyPI shows them."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) < 462
    assert re.findall(r"\]\((?!https://)[^)]*", text) == []


def test_readme_commands_run() -> None:
    """The commands that need no broker run."""
    assert SHELL
    for line in SHELL:
        run("bash", "-c", f"PATH={Path(sys.executable).parent}:$PATH; {line}")


def test_readme_lands_as_the_tutorial_does() -> None:
    """The tutorial runs the pipeline's command."""
    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    assert SPARK["sh"].replace("localhost", "127.0.0.1") in tutorial


def test_readme_names_all_extras() -> None:
    """README has each extra of the package once."""
    text = (ROOT / "README.md").read_text("utf-8")
    named = re.findall(r"`(\w+)`", text.partition("The extras are")[2].partition("\n\n")[0])
    assert named == sorted(
        tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    )


@pytest.mark.broker
def test_examples_run(kafka_broker: LocalBroker) -> None:
    """Each example does what its docstring says."""
    servers = kafka_broker.bootstrap_servers
    source, target = kafka_broker.create_topic("example-orders"), kafka_broker.create_topic("example-copies")
    readings, dead = kafka_broker.create_topic("example-readings"), kafka_broker.create_topic("example-dead")
    example = {path.stem: str(path) for path in (ROOT / "examples").glob("*.py")}
    assert set(example) == {
        "emit",
        "consume",
        "relay",
        "service",
        "own_format",
        "extensions",
        "typed_orders",
        "web_orders",  # by tests/clients/aio/test_web_example.py
    }, "an example that no test runs"
    assert run(sys.executable, example["emit"], servers, source) == "sent 3 events\n"
    assert run(sys.executable, example["relay"], servers, source, target) == "passed 3 records\n"
    assert run(sys.executable, example["consume"], servers, target).endswith("3 events, 0 broken\n")
    assert (
        run(sys.executable, example["typed_orders"], servers, source)
        == "1 placed orders, 0 records set aside\n"
    )
    served = run(sys.executable, example["service"], servers, source, dead).splitlines()
    assert served[-1] == "handled: 2, dead letters: 1, further tries: 2"
    command = (sys.executable, "-m", "cloudevents_kafka", "replay", "-b", servers, "-t", dead, "--to", target)
    assert run(*command, "--send").splitlines()[-1] == "of 1 record read, 1 matches; 1 sent"
    assert "attempt: 3" in run(sys.executable, example["own_format"])
    assert run(sys.executable, example["extensions"], servers, readings).splitlines() == [
        "small: 24 bytes, first, one hop: True",
        "large: 100014 bytes, next, one hop: True",
        "last: 24 bytes, gap, one hop: True",
    ]
