"""The examples in the docstrings of pipelines print what they say, with a broker."""

from __future__ import annotations

import docstrings
import pytest
from confluent_kafka import Producer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.broker,
    pytest.mark.timeout(300),
    # PySpark leaves the sockets of results to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
IN_EACH_RUN = ("EventPipeline", "decode_events")
EXAMPLES = [
    pytest.param(
        doc, id=f"{doc.module}.{doc.name}", marks=[] if doc.name in IN_EACH_RUN else pytest.mark.release
    )
    for doc in docstrings.with_examples()
    if doc.of_spark and doc.needs_broker
]


@pytest.mark.parametrize("doc", EXAMPLES)
def test_examples_run(doc: docstrings.Docstring, session, kafka_broker, kafka_topic, tmp_path) -> None:
    """Each example with a broker prints what the docstring says; some run before a release only."""
    docstrings.send(Producer({"bootstrap.servers": kafka_broker.bootstrap_servers}), kafka_topic)
    there = {"servers": kafka_broker.bootstrap_servers, "topic": f'"{kafka_topic}"', "folder": f"{tmp_path}/"}
    docstrings.run(doc, spark=session, **there)
