"""The examples in the docstrings of pipelines print what they say, with a broker."""

from __future__ import annotations

import gc
import warnings

import pytest
from confluent_kafka import Producer

from tests.spark.pipeline.conftest import hidden_spark
from tests.support import docstrings

pytestmark = [
    pytest.mark.spark,
    pytest.mark.broker,
    # PySpark leaves the sockets of results to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
IN_EACH_RUN = ("EventPipeline", "WrongTable", "decode_events")


def examples(needs: str) -> list[object]:
    """Return the docstrings that need this; most of them are for a release."""
    return [
        pytest.param(
            doc, id=f"{doc.module}.{doc.name}", marks=[] if doc.name in IN_EACH_RUN else pytest.mark.release
        )
        for doc in docstrings.with_examples()
        if doc.of_spark and doc.needs == needs
    ]


@pytest.mark.parametrize("doc", examples("broker"))
def test_examples_run(doc: docstrings.Docstring, session, kafka_broker, kafka_topic, tmp_path) -> None:
    """Each example with a broker prints what the docstring says; some run before a release only."""
    docstrings.send(Producer({"bootstrap.servers": kafka_broker.bootstrap_servers}), kafka_topic)
    there = {"servers": kafka_broker.bootstrap_servers, "topic": f'"{kafka_topic}"', "folder": f"{tmp_path}/"}
    docstrings.run(doc, spark=session, **there)


@pytest.mark.parametrize("doc", examples("a Spark of its own"))
def test_examples_that_start_spark_run(doc: docstrings.Docstring, session, tmp_path) -> None:
    """Each example that starts a Spark prints what the docstring says, for a folder with a table."""
    for number in range(2):
        row = session.range(number, number + 1, 1, 1)
        row.write.format("delta").mode("append").save(f"{tmp_path}/events")
    with hidden_spark(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        docstrings.run(doc, folder=f"{tmp_path}/")
        gc.collect()  # PySpark leaves the pipe to a Java that did not start
