"""The public names of `cloudevents_kafka.spark`, and its errors for packages that are not installed."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import pytest

import cloudevents_kafka.spark
from cloudevents_kafka.primitives.installing import pip_install

MISSING = [
    ("event_schema", "pyspark"),
    *product(("cloudevent", "decode_events", "encode_events", "register"), ("pyspark", "pandas", "pyarrow")),
]


def _without(package: str, code: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.modules[{package!r}] = None\n{code}"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("function", "package"),
    # Each function and each package once.
    [pytest.param(*each, marks=[pytest.mark.release] * (n % 4 > 0)) for n, each in enumerate(MISSING)],
)
def test_a_missing_package_is_named_with_its_extra(function: str, package: str) -> None:
    """The import raises one sentence with the function, the package and the extra."""
    run = _without(package, f"from cloudevents_kafka.spark import {function}")
    last = run.stderr.strip().splitlines()[-1]
    assert run.returncode == 1
    assert last == (
        f"ModuleNotFoundError: cloudevents_kafka.spark.{function} needs {package}, which is not installed: "
        f"{pip_install('spark')}"
    )
    assert "The above exception was the direct cause" in run.stderr


def test_the_package_itself_needs_none_of_them() -> None:
    """The package can be imported without PySpark; its functions are imported one by one."""
    code = """
import cloudevents_kafka.spark as spark
import cloudevents_kafka.spark.connector
try:
    spark.decode_events
except ImportError as error:
    print(error.name, type(error.__cause__).__name__)
try:
    spark.connector.kafka_package()
except spark.connector.NoConnector as error:
    print(error)
"""
    run = _without("pyspark", code)
    assert run.stdout.splitlines() == [
        "pyspark ModuleNotFoundError",
        f"PySpark is not installed; do: {pip_install('spark')}",
    ]


def test_every_public_name_exists() -> None:
    """Each public name is imported once; others raise `AttributeError`."""
    for name in cloudevents_kafka.spark.__all__:
        assert getattr(cloudevents_kafka.spark, name) is getattr(cloudevents_kafka.spark, name)
    with pytest.raises(AttributeError, match="no attribute 'decode_event'"):
        _ = cloudevents_kafka.spark.decode_event  # type: ignore[attr-defined]  # misspelled


def test_other_missing_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of this package that cannot be imported is named, without advice to install an extra."""
    monkeypatch.setitem(sys.modules, "cloudevents_kafka.spark.sql", None)
    monkeypatch.delitem(vars(cloudevents_kafka.spark), "register", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"cloudevents_kafka\.spark\.sql"):
        _ = cloudevents_kafka.spark.register
