"""The archive of Spark's classes is used if it is there, and Spark starts without it, too."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cloudevents_kafka.jvm import CACHE_VARIABLE, Java, find_java
from cloudevents_kafka.spark import class_archive
from cloudevents_kafka.spark.class_archive import ClassArchive
from cloudevents_kafka.spark.pipeline import local_session
from cloudevents_kafka.spark.pipeline.session import _archiving, write_class_archive
from tests.spark.pipeline.conftest import hidden_spark

pytestmark = [pytest.mark.spark]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and no options of Java in the environment."""
    for name in class_archive._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "a cache"))
    return tmp_path / "a cache"


def archive() -> ClassArchive:
    """Return the archive of this machine, with a file that Java cannot read."""
    found = ClassArchive.of(find_java())
    found.folder.mkdir(parents=True)
    (found.folder / "written.jsa").write_bytes(b"not an archive")
    class_archive.finish(found.folder / "written.jsa")
    return found


def test_an_archive_is_used_if_it_is_there() -> None:
    """Without its file there are no options; with it they have its path, in quotes."""
    found = ClassArchive.of(find_java())
    assert found.options_to_read({}) == ""
    assert archive().options_to_read({}).startswith(f'"-XX:SharedArchiveFile={found.find()}" ')


@pytest.mark.parametrize(
    "option", ["-XX:SharedArchiveFile=/mine", "-Xshare:off", "-XX:ArchiveClassesAtExit=/x"]
)
def test_the_choice_of_users_counts(monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """A user who has chosen an archive, or none, gets no other: by a setting, and by the environment."""
    found = archive()
    assert found.options_to_read({"spark.driver.extraJavaOptions": f"-Dx=y {option}"}) == ""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", option)
    assert found.options_to_read({}) == ""


def test_a_damaged_archive_is_not_used() -> None:
    """Java would end by a signal with one that has lost its end, so its checksum is compared."""
    found = archive()
    file = found.find()
    assert file is not None
    file.write_bytes(file.read_bytes()[:-1])
    assert found.find() is None
    assert found.options_to_read({}) == ""


def test_another_java_or_other_jars_have_another_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The folder depends on Java, and on the jars of the Spark that is used."""
    java = find_java()
    folders = {ClassArchive.of(java).folder}
    folders.add(ClassArchive.of(Java(java.home, "99", java.modules)).folder)
    (tmp_path / "jars").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    folders.add(ClassArchive.of(java).folder)
    (tmp_path / "jars" / "a.jar").write_bytes(b"1")
    folders.add(ClassArchive.of(java).folder)
    assert len(folders) == 4


def test_two_processes_write_it_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second waits for the first; what is written is complete, and its size is printed."""
    begun, go_on, runs = threading.Event(), threading.Event(), []

    def run(options: str, folder: Path) -> None:
        runs.append(options)
        begun.set()
        go_on.wait(60)
        (folder / "classes.jsa").write_bytes(bytes(3_000_000))

    monkeypatch.setattr(_archiving, "_run", run)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(write_class_archive())) for _ in range(2)]
    threads[0].start()
    assert begun.wait(60)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert len(runs) == 1
    assert len({*found}) == 1
    assert "Spark: 3 MB of classes archived in 0 s; kept in" in capsys.readouterr().err


def test_a_failed_run_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error while it is written leaves no folder, so the next one begins again."""

    def fail(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(_archiving, "_run", fail)
    with pytest.raises(RuntimeError, match="disk full"):
        write_class_archive()
    assert not ClassArchive.of(find_java()).folder.exists()


_COUNT = """
from cloudevents_kafka.spark.pipeline import local_session
with local_session(master="local[1]", kafka=False) as spark:
    print(spark.range(3).count())
"""


def started(**variables: str) -> str:
    """Start Spark in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", _COUNT],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.release
@pytest.mark.timeout(300)
def test_spark_starts_with_an_archive_of_another_java() -> None:
    """Java does without one that it cannot read, and says nothing."""
    archive()
    assert started() == "3\n"


@pytest.mark.release
@pytest.mark.timeout(600)
def test_java_loads_classes_from_it(tmp_path: Path) -> None:
    """A start loads the classes of Spark's jars from it; with half of the file Spark starts without it."""
    log = tmp_path / "classes.log"
    conf = {"spark.driver.extraJavaOptions": f"-Xlog:class+load:file={log}"}
    with hidden_spark():  # of other tests on this worker
        file = write_class_archive()
        with local_session(master="local[1]", kafka=False, conf=conf) as spark:
            assert spark.range(3).count() == 3
    lines = [line for line in log.read_text().splitlines() if " org.apache.spark." in line]
    of_jars = [line for line in lines if "$$Lambda" not in line]  # those are made when they are needed
    assert len(of_jars) > 1000
    assert sum("shared objects file" in line for line in of_jars) > len(of_jars) * 0.95
    file.chmod(0o600)
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)
    assert started() == "3\n"
