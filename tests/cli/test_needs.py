"""A command reports all that it needs and is missing, with what mends it, before it starts anything."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cloudevents_kafka.cli import needs
from cloudevents_kafka.cli.app import COMMANDS
from cloudevents_kafka.cli.commands.doctor import COMMAND_NEEDS, PARTS
from cloudevents_kafka.cli.needs import Finding, connector, kafka_jars, packages, port, table_format
from cloudevents_kafka.jvm import CACHE_VARIABLE, _java
from cloudevents_kafka.jvm._web import MIRROR_VARIABLE
from cloudevents_kafka.primitives.installing import pip_install

NO_JAVA = r"- Java: no suitable Java: Java 17 or 21 with .* is required\. Searched:\n    - .*no Java at all"
NO_KAFKA = r"- the jars of Kafka 4\.3\.1: cannot fetch org\.apache\.kafka:kafka_2\.13:4\.3\.1.*: "
NO_SPARK = rf"- pyspark, py4j, pandas, pyarrow: {re.escape(pip_install('spark'))}\n"

# The command line where packages are missing, and Java, the cache and the network are too.
BARE = """
import sys
for name in filter(None, sys.argv.pop(1).split(",")):
    sys.modules[name] = None
from cloudevents_kafka.jvm import _java
_java.JAVA_HOMES = ()
from cloudevents_kafka.cli import main
main()
"""


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """An environment without Java, jars and a Maven repository."""
    monkeypatch.setattr(_java, "JAVA_HOMES", ())
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(MIRROR_VARIABLE, (tmp_path / "no repository").as_uri())


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def command_line(missing: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", BARE, missing, *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.usefixtures("bare")
def test_a_broker_reports_all_at_once(taken_port):
    """Without Java, jars and its port, one message has the three, and the exit code is 2."""
    result = command_line("", "broker", "--port", str(taken_port))
    assert (result.returncode, result.stdout) == (2, "")
    assert "broker was not started, because requirements are missing:\n" in result.stderr
    assert re.search(NO_JAVA, result.stderr)
    assert re.search(NO_KAFKA, result.stderr)
    assert f"- port {taken_port} to be free: another program listens on it" in result.stderr
    assert "apt install openjdk-17-jre-headless" in result.stderr


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    "words",
    [
        ["demo"],
        ["pipeline", "-b", "127.0.0.1:1", "-t", "t", "-o", "out", "--to", "delta"],
        ["table", "vacuum", "--table", "a.b.c"],
    ],
)
def test_spark_commands_report_all_at_once(words):
    """Without PySpark, Java and jars, one message has all that can be known."""
    pytest.importorskip("pyspark")
    result = command_line("pyspark,py4j,pandas,pyarrow", *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{words[0]} was not started, because requirements are missing" in result.stderr
    assert re.search(NO_SPARK, result.stderr)
    assert re.search(NO_JAVA, result.stderr)
    assert bool(re.search(NO_KAFKA, result.stderr)) is (words == ["demo"])


@pytest.mark.usefixtures("bare")
def test_jars_of_spark_are_reported_together():
    """The connector and the table format are in one message with Java."""
    pytest.importorskip("pyspark")
    result = command_line("", "pipeline", "-b", "127.0.0.1:1", "-t", "t", "-o", "out", "--to", "iceberg")
    assert result.returncode == 2
    assert "- Java: no suitable Java" in result.stderr
    assert "- the jars of Spark's Kafka connector" in result.stderr
    assert "- the jars of Iceberg" in result.stderr


def test_a_single_need_is_one_sentence(taken_port):
    """With one thing missing, the message is one sentence, as for a missing extra."""
    problem = port(taken_port)(True).problem
    assert problem.startswith(f"port {taken_port} to be free: ")


def test_an_old_pyspark_is_reported(monkeypatch):
    """A PySpark that is too old counts as missing."""
    pytest.importorskip("pyspark")
    monkeypatch.setattr(needs, "version", lambda _: "3.5.9")
    problem = "pyspark 4.0 or newer (got 3.5.9)"
    monkeypatch.setattr(needs, "EXTRAS", {"spark": {"pyspark": (4, 0), "py4j": ()}})
    assert packages("spark")(False).problem == f"{problem}: {pip_install('spark')}"
    for check in (connector, table_format("delta")):  # these depend on it
        assert check(True) == Finding()


def test_old_packages_are_reported_together(monkeypatch):
    """All packages of an extra that are missing or too old are in one line, with one command."""
    versions = {"pandas": "1.5.3", "pyarrow": "12.0.0"}
    wanted = {"no_such_package": (), "pandas": (2, 2), "pyarrow": (18, 0)}
    monkeypatch.setattr(needs, "EXTRAS", {"spark": wanted})
    monkeypatch.setattr(needs, "find_spec", versions.get)
    monkeypatch.setattr(needs, "version", versions.__getitem__)
    assert packages("spark")(False).problem == (
        "no_such_package, pandas 2.2 or newer (got 1.5.3), pyarrow 18.0 or newer (got 12.0.0): "
        f"{pip_install('spark')}"
    )


def test_the_oldest_versions_are_those_of_the_extras():
    """Each extra is checked; the oldest versions that the checks accept are those that pip would install."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert needs.EXTRAS.keys() == project["optional-dependencies"].keys()
    texts = [text for extra in needs.EXTRAS for text in project["optional-dependencies"][extra]]
    matches = filter(None, (re.match(r"([\w-]+)>=([\d.]+)", text) for text in texts))
    found = {match[1].replace("-", "_"): match[2] for match in matches}
    for extra in needs.EXTRAS.values():
        for name, oldest in extra.items():
            minimum = found.get(needs._DISTRIBUTIONS.get(name, name).replace("-", "_"), "")
            assert (*map(int, filter(None, minimum.split("."))), 0)[: len(oldest)] == oldest


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no folder that root cannot write to")
def test_a_cache_that_cannot_be_written(monkeypatch):
    """Jars are reported with the cache folder, the reason and what to set, next to all other needs."""
    monkeypatch.setenv(CACHE_VARIABLE, "/proc/cache")
    problem = kafka_jars(True).problem
    assert problem.startswith("the jars of Kafka 4.3.1: the cache folder must be writable for this user, got")
    assert f"/proc/cache (No such file or directory); set {CACHE_VARIABLE} to another folder" in problem


@pytest.mark.usefixtures("bare")
def test_a_cache_that_cannot_be_written_without_pyspark(monkeypatch, tmp_path):
    """The cache folder is reported also if PySpark, which decides what must be in it, is missing."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
    words = ["pipeline", "-b", "127.0.0.1:1", "-t", "t", "-o", "out"]
    result = command_line("pyspark,py4j,pandas,pyarrow", *words)
    assert result.returncode == 2
    assert re.search(NO_SPARK, result.stderr)
    assert re.search(NO_JAVA, result.stderr)
    assert "- the jars of Spark: the cache folder must be writable for this user" in result.stderr


def test_the_table_has_each_command():
    """Each command is in the table of needs; only programs of users need the other parts."""
    assert {name.split()[0] for name in COMMAND_NEEDS} == COMMANDS.keys() - {"doctor"}
    of_programs = {"extra readers", "extra testing", "extra tracing"}
    assert {need for needs in COMMAND_NEEDS.values() for need in needs} == PARTS.keys() - of_programs
