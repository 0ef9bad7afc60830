"""Each public name has an example in its docstring, which runs and prints what it says."""

from __future__ import annotations

import docstrings
import pytest
from confluent_kafka import Producer

from cloudevents_kafka.testing import LocalBroker

# The names that do not have an example yet, with what it needs. Remove a name with its first example.
MISSING = {
    "a landed topic, or a pipeline that fails": """
        spark.pipeline.FolderFailed spark.pipeline.InUse spark.pipeline.NotOnConnect
        spark.pipeline.PipelineFailed spark.pipeline.SparkFailed spark.pipeline.TopicChanged
        spark.pipeline.WrongCheckpoint spark.pipeline.WrongStore spark.pipeline.WrongTable
        spark.pipeline.local_session spark.pipeline.maintenance.WrongTable
        spark.pipeline.maintenance.optimize_tables spark.pipeline.maintenance.vacuum_tables
    """,
    "ZooKeeper": """
        protocol.v07.zookeeper.TIMEOUT protocol.v07.zookeeper.NodeExists protocol.v07.zookeeper.connect
        protocol.v07.zookeeper.Watcher protocol.v07.zookeeper.watch_cluster
        protocol.v07.zookeeper.watch_group protocol.v07.zookeeper.announce protocol.v07.zookeeper.Consumer
    """,
    "a reader or writer of the wire format of one's own": """
        protocol.codec.interpreter.Decoder protocol.codec.interpreter.decode_tags
        protocol.codec.interpreter.encode_tags protocol.codec.compiler.Decoder protocol.records.Nesting
    """,
}
WITHOUT = {f"cloudevents_kafka.{name}" for names in MISSING.values() for name in names.split()}
EXAMPLES = [doc for doc in docstrings.with_examples() if not doc.of_spark]


def test_every_public_name_has_an_example() -> None:
    """Each name that the reference shows has a part "Examples:", except those that are listed above."""
    without = {name for name, doc in docstrings.public().items() if not doc.examples}
    assert sorted(without - WITHOUT) == [], "the docstrings of these names must have an example"
    assert sorted(WITHOUT - without) == [], (
        "these have an example, or do not exist: remove them from the list"
    )


def test_examples_are_at_the_end() -> None:
    """Examples are in a part "Examples:", which is the last one."""
    for doc in docstrings.with_examples():
        before, _, examples = doc.text.partition("\nExamples:\n    >>> ")
        assert examples, f"{doc.name} of {doc.module}: the examples must be in a part named Examples:"
        assert ">>> " not in before, f"{doc.name} of {doc.module}: all examples must be in the part Examples:"


def parameters(*, broker: bool) -> list[object]:
    return [
        pytest.param(doc, id=f"{doc.module}.{doc.name}") for doc in EXAMPLES if doc.needs_broker == broker
    ]


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("doc", parameters(broker=False))
def test_examples_run(doc: docstrings.Docstring, tmp_path, monkeypatch) -> None:
    """Each example prints what the docstring says, with fakes of the clients."""
    monkeypatch.chdir(tmp_path)
    docstrings.run(doc, **docstrings.clients())


@pytest.fixture(scope="module")
def client(kafka_broker: LocalBroker) -> Producer:
    return Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})


@pytest.mark.broker
@pytest.mark.parametrize("doc", parameters(broker=True))
def test_examples_with_a_broker_run(doc, client, kafka_broker, kafka_topic, tmp_path, monkeypatch) -> None:
    """Each example with a broker prints what the docstring says."""
    monkeypatch.chdir(tmp_path)
    docstrings.send(client, kafka_topic)
    docstrings.run(doc, servers=kafka_broker.bootstrap_servers, topic=f'"{kafka_topic}"')
