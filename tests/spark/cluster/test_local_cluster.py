"""`decode_events` on a cluster of two executors, in processes of their own, without the package."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .spark_home import environment, script

pytestmark = [pytest.mark.slow, pytest.mark.release]  # the start of a cluster takes a minute

DRIVER = Path(__file__).with_name("driver.py")


@pytest.fixture(scope="session")  # other modules may run between the tests of this one
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the driver once for all tests."""
    pytest.importorskip("pyspark", minversion="4.0")
    folder = tmp_path_factory.mktemp("cluster")
    done = subprocess.run(
        script(DRIVER, "local-cluster[2,1,1024]", folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        cwd=folder,
        env=environment(folder),
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def test_valid_events_need_no_package(found: dict[str, Any]) -> None:
    """Java reads them; a worker without this package imports it for no row."""
    assert found["java"]
    assert found["valid"]


def test_the_error_names_the_command(found: dict[str, Any]) -> None:
    """A record that needs Python fails the job with the command that writes the package to a zip."""
    assert "cloudevents_kafka is missing in the Python workers" in found["error"]
    assert "cloudevents-kafka spark-zip FILE" in found["error"]


def test_with_the_zip(found: dict[str, Any]) -> None:
    """The zip is all that the workers need of this package."""
    assert found["with zip"]


def test_executors_are_killed(found: dict[str, Any]) -> None:
    """Each executor dies in the middle of a job: new ones find the jar, and each row is read once."""
    counts = found["killed"]
    assert counts["killed"] == 2
    assert counts["started"] >= 1
    assert (counts["events"], counts["errors"], counts["offsets"]) == (30_000, 10_000, 40_000)
    assert found["after"]


def test_nothing_is_left_in_the_temporary_folder(found: dict[str, Any]) -> None:
    """Neither while the session runs nor after Java was killed does it have one of our files."""
    assert found["left"] == []
