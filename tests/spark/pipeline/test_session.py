"""The session of a pipeline: Ctrl-C is handled by this process, not by PySpark."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from cloudevents_kafka.spark.pipeline import _session


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
