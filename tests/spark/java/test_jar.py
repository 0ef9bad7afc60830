"""The jar of the Java function: in the package, and the same bytes everywhere."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", minversion="4.0")

from click.testing import CliRunner

from cloudevents_kafka.cli.app import app
from cloudevents_kafka.spark.java import jar
from tests.support.jar_script import jar_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("CLOUDEVENTS_KAFKA_CACHE", str(folder))
    return folder


@pytest.fixture
def zipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Use a package that is imported from a zip."""
    packaged = Path(str(jar.packaged_jar()))
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.write(packaged, f"jars/{packaged.name}")
    inside = zipfile.Path(tmp_path / "package.zip") / "jars" / packaged.name
    monkeypatch.setattr(jar, "packaged_jar", lambda: inside)


@pytest.mark.release  # the hash of the sources in its name is the sample
def test_the_package_has_what_the_sources_compile_to(spark: SparkSession, cache: Path) -> None:
    """The jar in the package is current, and is used where it is: nothing is written."""
    script = jar_script()
    packaged = jar.packaged_jar()
    assert packaged.name == script.jar_name(), "do: make jar"
    assert packaged.read_bytes() == script.compiled(spark._jvm), "do: make jar"
    assert str(jar.session_jar(spark._jvm)) == str(jar.existing_jar()) == str(packaged)
    assert not cache.exists()


@pytest.mark.release  # the other tests use the same jar of the package
@pytest.mark.usefixtures("zipped")
def test_a_package_in_a_zip(spark: SparkSession, cache: Path) -> None:
    """Spark needs a file: the jar is copied from the zip, once."""
    content = jar.packaged_jar().read_bytes()
    with jar.jar_to_send() as sent:
        assert sent.read_bytes() == content
    assert not sent.parent.exists()
    assert jar.session_jar(spark._jvm).parent == cache / "spark"
    assert jar.session_jar(spark._jvm).read_bytes() == content
    with jar.jar_to_send() as sent:
        assert sent == jar.existing_jar()


def test_its_name_has_a_hash_of_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark Connect refuses another jar of the same name, so other sources have another name."""
    script, names = jar_script(), set()
    for source in ("one", "two"):
        monkeypatch.setattr(script, "source", lambda _, source=source: source)
        names.add(script.jar_name())
    assert len(names) == 2


@pytest.mark.usefixtures("zipped")
@pytest.mark.parametrize("content", [b"", b"not a zip file", None])
def test_a_damaged_jar_is_copied_again(spark: SparkSession, cache: Path, content: bytes | None) -> None:
    """A jar in the cache that is empty, truncated or changed does not count."""
    copied = jar.session_jar(spark._jvm)
    good = copied.read_bytes()
    copied.write_bytes(good[:2000] + bytes(8) + good[2008:] if content is None else content)
    assert jar.existing_jar() is None
    assert jar.session_jar(spark._jvm).read_bytes() == good


@pytest.mark.usefixtures("zipped")
def test_without_a_cache_folder(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the cache folder cannot be written, the jar is in the folder that Spark deletes with the session."""
    from pyspark import SparkFiles

    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("CLOUDEVENTS_KAFKA_CACHE", str(file))
    copied = jar.session_jar(spark._jvm)
    assert copied.is_relative_to(SparkFiles.getRootDirectory())
    with zipfile.ZipFile(copied) as archive:
        assert "cloudevents_kafka/spark/Functions.class" in archive.namelist()


def test_a_package_without_a_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says what makes the jar, and ``spark-jar`` ends with it."""
    monkeypatch.setattr(jar.resources, "files", lambda _: tmp_path)
    with pytest.raises(jar.NoReaderJar, match=r"must have 1 jar of the Java function, got 0; do: make jar"):
        jar.packaged_jar()
    done = CliRunner().invoke(app, ["spark-jar", str(tmp_path / "ce.jar")])
    assert done.exit_code == 2
    assert "do: make jar" in done.output


def test_the_command_copies_the_jar(cache: Path, tmp_path: Path) -> None:
    """``spark-jar`` writes the jar and prints the three settings, the class last."""
    done = CliRunner().invoke(app, ["spark-jar", str(tmp_path / "ce.jar")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "ce.jar").read_bytes() == jar.packaged_jar().read_bytes()
    names = [line.split(" ")[0].removeprefix("spark.sql.catalog.") for line in done.output.splitlines()]
    assert names == ["cloudevents_kafka.row", "cloudevents_kafka.wire", "cloudevents_kafka"]
    bad = CliRunner().invoke(app, ["spark-jar", str(tmp_path / "missing" / "ce.jar")])
    assert bad.exit_code == 2
    assert "cannot write" in bad.output
