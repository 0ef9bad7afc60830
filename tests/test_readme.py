"""The README's snippets and every example are run, against a real broker where they need one."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cloudevents_kafka.testing import LocalBroker

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(
    r"^```(\w+)( spark)?\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
)
PYTHON = [code for language, spark, code in BLOCKS if language == "python" and not spark]
(PRINTED,) = (code for language, _, code in BLOCKS if language == "text")
SPARK = {language: code.strip() for language, spark, code in BLOCKS if spark}
SHELL = [
    line
    for language, spark, code in BLOCKS
    if language == "sh" and not spark
    for line in code.splitlines()
    if line.startswith("cloudevents-kafka")
]


def run(*argv: str) -> str:
    """Run a program to its end; its output, and a failure with all it said otherwise."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.broker
def test_readme_snippets_run(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """All Python snippets, in order, as printed but for the broker's address and the file of traffic."""
    kafka_broker.create_topic("orders")
    code = "\n".join(PYTHON).replace("localhost:9092", kafka_broker.bootstrap_servers)
    code = code.replace("idle_timeout=10", "idle_timeout=6").replace(
        "traffic.jsonl", str(tmp_path / "traffic")
    )
    output = run(sys.executable, "-c", code)
    assert "{'celsius': 21.5}" in output
    assert "com.example.order.placed None {'order': 17, 'total': '9.50'} b'customer-4'" in output
    assert "orders[2]@1741: not a CloudEvent" in output


@pytest.mark.broker
def test_readme_commands_run(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """The command lines too; what one is shown to print, it prints."""
    if not SHELL:
        pytest.fail("the README shows no command line")
    topic, copy = kafka_broker.create_topic("orders-cli"), kafka_broker.create_topic("copy-of-orders-cli")
    scripts = Path(sys.executable).parent
    for line in SHELL:
        command = line.replace("localhost:9092", kafka_broker.bootstrap_servers)
        command = command.replace("copy-of-orders", copy).replace("-t orders", f"-t {topic}")
        command = command.replace(" orders ", f" {topic} ").replace(
            "capture.jsonl", str(tmp_path / "capture")
        )
        output = run("bash", "-o", "pipefail", "-c", f"PATH={scripts}:$PATH; {command}")
        if "consume" in line and "produce" not in line:
            assert "order.placed" in output
        if "--hex" in line:
            assert output.strip() == PRINTED.strip()


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_readme_spark_runs(kafka_broker: LocalBroker, tmp_path: Path) -> None:
    """The pipeline's command and the Spark snippet, on a topic of three events."""
    servers = kafka_broker.bootstrap_servers
    topic, placed = kafka_broker.create_topic("orders-spark"), kafka_broker.create_topic("orders-placed")
    run(sys.executable, str(ROOT / "examples" / "emit.py"), servers, topic)
    command = SPARK["sh"].replace("localhost:9092", servers).replace("./lake", str(tmp_path / "lake"))
    scripts = Path(sys.executable).parent
    run("bash", "-c", f"PATH={scripts}:$PATH; {command.replace('-t orders', f'-t {topic}')}")
    assert list((tmp_path / "lake" / "events").rglob("*.parquet"))
    code = SPARK["python"].replace("localhost:9092", servers).replace('"orders"', f'"{topic}"')
    session = "from cloudevents_kafka.spark.pipeline.session import local_session\n"
    session += "with local_session() as spark:\n"
    run(sys.executable, "-c", session + textwrap.indent(code, "    "))
    copies = run(sys.executable, str(ROOT / "examples" / "consume.py"), servers, placed)
    assert copies.endswith("1 events, 0 broken\n")


@pytest.mark.broker
def test_examples_run(kafka_broker: LocalBroker) -> None:
    """Each example does what its head says."""
    servers = kafka_broker.bootstrap_servers
    source, target = kafka_broker.create_topic("example-orders"), kafka_broker.create_topic("example-copies")
    readings = kafka_broker.create_topic("example-readings")
    example = {path.stem: str(path) for path in (ROOT / "examples").glob("*.py")}
    assert set(example) == {"emit", "consume", "relay", "own_format", "extensions"}, (
        "an example that no test runs"
    )
    assert run(sys.executable, example["emit"], servers, source) == "sent 3 events\n"
    assert run(sys.executable, example["relay"], servers, source, target) == "passed 3 records\n"
    assert run(sys.executable, example["consume"], servers, target).endswith("3 events, 0 broken\n")
    assert "attempt: 3" in run(sys.executable, example["own_format"])
    assert run(sys.executable, example["extensions"], servers, readings).splitlines() == [
        "small: 24 bytes, first, one hop: True",
        "large: 100014 bytes, next, one hop: True",
        "last: 24 bytes, gap, one hop: True",
    ]
