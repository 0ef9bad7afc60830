"""The session of a pipeline: Ctrl-C, and Java's command line, which other users of the machine can read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline.session import _session


def test_pyspark_does_not_handle_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's handler of Ctrl-C is replaced before the next call of Java, which it could interrupt."""
    handlers: list[Any] = []

    class Conf:
        def __init__(self, **_: Any) -> None: ...

        def setAll(self, _: Any) -> Conf:  # noqa: N802 - PySpark's name
            return self

    class Context:
        def __init__(self, **_: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # as PySpark does, with a function

    monkeypatch.setattr("pyspark.SparkConf", Conf)
    monkeypatch.setattr("pyspark.SparkContext", Context)
    monkeypatch.setattr(
        "pyspark.sql.SparkSession", lambda _: handlers.append(signal.getsignal(signal.SIGINT))
    )
    before = signal.getsignal(signal.SIGINT)
    try:
        _session._connect({}, SimpleNamespace(jvm=None))
    finally:
        signal.signal(signal.SIGINT, before)
    assert handlers == [before]


_SCRIPT = """
import json, subprocess
from cloudevents_kafka.spark.pipeline import local_session

conf = {
    "spark.driver.memory": "600m",
    "spark.sql.shuffle.partitions": "3",
    "spark.hadoop.fs.azure.account.key.me": "hunter2a",
    "spark.hadoop.fs.s3a.secret.key": "hunter2b",
    "spark.nobody.knows": "hunter2c",
}
with local_session(master="local[1]", conf=conf) as spark:
    settings = {name: spark.sparkContext.getConf().get(name) for name in conf}
    hadoop = spark.sparkContext._jsc.hadoopConfiguration().get("fs.azure.account.key.me")
    java = spark.sparkContext._gateway.proc.pid
    argv = ["ps", "-ww", "-o", "args=", "-p", str(java)]
    command_line = subprocess.run(argv, capture_output=True, text=True).stdout
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    print(json.dumps([conf == settings, hadoop, partitions, command_line]))
"""


@pytest.mark.release  # a demo in each run starts a session in a process of its own
@pytest.mark.spark
@pytest.mark.slow
def test_settings_follow() -> None:
    """All settings take effect, and only those that Java needs at its start are on its command line."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    same, hadoop, partitions, command_line = json.loads(done.stdout.splitlines()[-1])
    assert (same, hadoop, partitions) == (True, "hunter2a", "3")
    assert "600m" in command_line
    assert "hunter2" not in command_line
    assert "nobody" not in command_line
