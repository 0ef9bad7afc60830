"""Each public name has an example in its docstring, which runs and prints what it says."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from cloudevents_kafka.testing import LocalBroker
from tests.support import docstrings

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


def parameters(needs: str) -> list[object]:
    """Return the examples with a need; those that start a broker of their own run in `make release`."""
    return [
        pytest.param(
            doc,
            id=f"{doc.module}.{doc.name}",
            marks=[pytest.mark.release] * (".testing.local." in doc.module),
        )
        for doc in EXAMPLES
        if doc.needs == needs
    ]


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("doc", parameters(""))
def test_examples_run(doc: docstrings.Docstring, tmp_path, monkeypatch) -> None:
    """Each example prints what the docstring says, with fakes of the clients."""
    monkeypatch.chdir(tmp_path)
    with docstrings.brokers(doc) as there:
        docstrings.run(doc, **there, **docstrings.clients())


@pytest.fixture(scope="module")
def client(kafka_broker: LocalBroker) -> Producer:
    return Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})


@pytest.mark.broker
@pytest.mark.parametrize("doc", parameters("broker"))
def test_examples_with_a_broker_run(doc, client, kafka_broker, kafka_topic, tmp_path, monkeypatch) -> None:
    """Each example with a broker prints what the docstring says."""
    monkeypatch.chdir(tmp_path)
    docstrings.send(client, kafka_topic)
    docstrings.run(doc, servers=kafka_broker.bootstrap_servers, topic=f'"{kafka_topic}"')
