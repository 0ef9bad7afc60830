"""The session that a pipeline brings: Ctrl-C stays this process's own business."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import session


def test_ctrl_c_is_ours_when_spark_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's handler calls Java, so it is gone before the next call of Java, which it could interrupt."""
    seen: list[Any] = []

    class Conf:
        def __init__(self, **_: Any) -> None: ...

        def setAll(self, _: Any) -> Conf:  # noqa: N802 - PySpark's name
            return self

    class Context:
        def __init__(self, **_: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # as PySpark does, with a function

    monkeypatch.setattr("pyspark.SparkConf", Conf)
    monkeypatch.setattr("pyspark.SparkContext", Context)
    monkeypatch.setattr("pyspark.sql.SparkSession", lambda _: seen.append(signal.getsignal(signal.SIGINT)))
    before = signal.getsignal(signal.SIGINT)
    try:
        session._connect({}, SimpleNamespace(jvm=None))
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [before]
