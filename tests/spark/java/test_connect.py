"""The Java function through Spark Connect, on a real server, for each way to add its jar and without it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cloudevents_kafka.jvm import CACHE_VARIABLE

from .connect_server import connect_server, environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

CLIENT = Path(__file__).with_name("connect_client.py")


@pytest.fixture(scope="package")
def jar(spark: SparkSession) -> Path:
    """Return the jar, compiled in the session of other tests if the package does not have it."""
    pytest.importorskip("grpc")
    from cloudevents_kafka.spark.java.jar import session_jar

    return session_jar(spark._jvm)


@pytest.fixture(scope="package")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder to which the first client writes its records."""
    return tmp_path_factory.mktemp("corpus") / "records"


def run_client(url: str, corpus: Path, *cases: tuple[Path, str | None]) -> list[dict[str, Any]]:
    arguments = [[str(cache), jar] for cache, jar in cases]
    done = subprocess.run(
        [sys.executable, str(CLIENT), url, str(corpus), json.dumps(arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return results


def check_events(result: dict[str, Any]) -> None:
    assert result["different"] == []
    assert result["streamed"] == result["events"] > 1000


@pytest.fixture(scope="package")
def results(jar: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Run one client with all cases against one server."""
    folder = tmp_path_factory.mktemp("server")
    named = folder / "named.jar"
    named.write_bytes(jar.read_bytes())
    cases = {
        "package": (folder / "no-cache", None),
        "setting": (folder / "no-cache", str(named)),
        "no such jar": (folder / "no-cache", str(folder / "missing.jar")),
    }
    with connect_server(folder, {}) as url:
        yield dict(zip(cases, run_client(url, corpus, *cases.values()), strict=True))


@pytest.mark.release  # tests/spark/test_connect.py has their sample
@pytest.mark.parametrize("case", ["package", "setting"])
def test_the_client_adds_the_jar(results: dict[str, Any], case: str) -> None:
    """The jar in the package, or the one that the setting names, reads the same events as `decode`."""
    check_events(results[case])
    assert results[case]["java"]
    assert results[case]["warnings"] == []


@pytest.mark.release
def test_without_a_jar_python_decodes(results: dict[str, Any]) -> None:
    """An Arrow UDF reads the same events, and one warning says why, and what to do."""
    check_events(results["no such jar"])
    assert not results["no such jar"]["java"]
    (warning,) = results["no such jar"]["warnings"]
    assert "must be the path of a jar on this machine, got " in warning
    assert "cloudevents-kafka spark-jar FILE" in warning


@pytest.mark.release
def test_the_server_has_the_jar(jar: Path, corpus: Path, tmp_path: Path) -> None:
    """A server with the jar and the settings that ``spark-jar`` prints needs nothing from its clients."""
    command = [sys.executable, "-c", "from cloudevents_kafka.cli import main; main()"]
    done = subprocess.run(
        [*command, "spark-jar", str(tmp_path / "ce.jar")],
        capture_output=True,
        text=True,
        check=True,
        env={**environment(), CACHE_VARIABLE: str(tmp_path / "cache")},
    )
    settings = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert len(settings) == 3
    assert (tmp_path / "ce.jar").read_bytes() == jar.read_bytes()
    with connect_server(tmp_path, settings, "--jars", str(tmp_path / "ce.jar")) as url:
        (result,) = run_client(url, corpus, (tmp_path / "no-cache", None))
    check_events(result)
    assert result["java"]
    assert result["warnings"] == []
