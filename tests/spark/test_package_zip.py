"""`spark-zip`: the package in a zip, complete and importable."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.spark.java.jar import packaged_jar
from cloudevents_kafka.spark.package_zip import write_zip


def test_the_command_writes_a_package(tmp_path: Path) -> None:
    """The zip is importable, and has the Java function and no byte code; the output is a setting."""
    file = tmp_path / "package.zip"
    done = CliRunner().invoke(app, ["spark-zip", str(file)])
    assert done.exit_code == 0, done.output
    assert done.output == f"spark.submit.pyFiles {file}\n"
    names = zipfile.ZipFile(file).namelist()
    assert f"cloudevents_kafka/spark/java/jars/{packaged_jar().name}" in names
    assert not [name for name in names if "__pycache__" in name]
    code = "import cloudevents_kafka.spark.udf, cloudevents_kafka.spark.java.jar as jar; "
    code += "print(cloudevents_kafka.__file__, jar.packaged_jar().is_file())"
    argv = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {code}", str(file)]
    run = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.split() == [f"{file}/cloudevents_kafka/__init__.py", "True"]


def test_the_same_package_has_the_same_bytes(tmp_path: Path) -> None:
    """A zip depends neither on its name nor on the time."""
    files = [tmp_path / name for name in ("one.zip", "two.zip")]
    for file in files:
        write_zip(file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.parametrize(
    ("file", "words"), [("package.whl", "FILE must end in .zip"), ("missing/package.zip", "cannot write")]
)
def test_other_files(tmp_path: Path, file: str, words: str) -> None:
    """Spark imports from files with a known ending; a folder must exist."""
    done = CliRunner().invoke(app, ["spark-zip", str(tmp_path / file)])
    assert done.exit_code == 2
    assert words in done.output
