"""Each public name has an example in its docstring, which runs and prints what it says."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cloudevents_kafka.registry import temporarily
from cloudevents_kafka.testing import LocalBroker
from tests.support import docstrings
from tests.support.cases import check_each

EXAMPLES = [doc for doc in docstrings.with_examples() if not doc.of_spark]


def test_every_public_name_has_an_example() -> None:
    """Each name that the reference shows has a part "Examples:"."""
    without = [name for name, doc in docstrings.public().items() if not doc.examples]
    assert without == [], "the docstrings of these names must have an example"


def test_examples_are_at_the_end() -> None:
    """Examples are in a part "Examples:", which is the last one."""
    for doc in docstrings.with_examples():
        before, _, examples = doc.text.partition("\nExamples:\n    >>> ")
        assert examples, f"{doc.name} of {doc.module}: the examples must be in a part named Examples:"
        assert ">>> " not in before, f"{doc.name} of {doc.module}: all examples must be in the part Examples:"


def test_each_need_has_a_test() -> None:
    """What an example needs is a broker, or what a test of Spark or of ZooKeeper has."""
    needs = {doc.needs for doc in EXAMPLES}
    assert needs == {"", "broker", "ZooKeeper"}


def name_of(doc: docstrings.Docstring) -> str:
    return f"{doc.module}.{doc.name}"


@pytest.mark.timeout(300)
def test_examples_run(tmp_path: Path) -> None:
    """Each example prints what the docstring says, with fakes of the clients, in a folder of its own."""

    def run(doc: docstrings.Docstring) -> None:
        folder = tmp_path / name_of(doc)
        folder.mkdir()
        with chdir(folder), temporarily(), docstrings.brokers(doc) as there:
            docstrings.run(doc, **there, **docstrings.clients())

    check_each([(name_of(doc), doc) for doc in EXAMPLES if not doc.needs], run)


# Those that start a broker of their own run in a release.
WITH_BROKER = [
    pytest.param(doc, id=name_of(doc), marks=[pytest.mark.release] * (".testing.local." in doc.module))
    for doc in EXAMPLES
    if doc.needs == "broker"
]


@pytest.fixture(scope="module")
def client(kafka_broker: LocalBroker) -> Producer:
    return Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})


@pytest.mark.broker
@pytest.mark.parametrize("doc", WITH_BROKER)
def test_examples_with_a_broker_run(doc, client, kafka_broker, kafka_topic, tmp_path, monkeypatch) -> None:
    """Each example with a broker prints what the docstring says."""
    monkeypatch.chdir(tmp_path)
    docstrings.send(client, kafka_topic)
    docstrings.run(doc, servers=kafka_broker.bootstrap_servers, topic=f'"{kafka_topic}"')
