"""A pipeline looks for a broker before it starts Spark."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from cloudevents_kafka.spark.pipeline import EventPipeline, PipelineFailed, PipelineOptions
from cloudevents_kafka.spark.pipeline.session import check_reachable
from tests.support.cases import each


def test_one_that_accepts_is_enough() -> None:
    """One address of several is enough, with or without a protocol before it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_reachable(f"127.0.0.1:1, 127.0.0.1:{port}")
        check_reachable(f"SASL_SSL://127.0.0.1:{port}")
        check_reachable(f"localhost:{port}")


def test_none_accepts() -> None:
    """The error has each address with its reason."""
    with pytest.raises(PipelineFailed, match=r"127.0.0.1:1 \(Connection refused\), \[::1\]:1 \(.+\); check"):
        check_reachable("127.0.0.1:1,[::1]:1")


@each("text", ["host", "host:99999", "a b", "host:port"])
def test_what_is_not_an_address(text: str) -> None:
    """A text that is not an address is for Java to refuse."""
    check_reachable(text)


def test_a_pipeline_fails_soon(tmp_path: Path) -> None:
    """Without a broker the pipeline fails before it starts Spark."""
    options = PipelineOptions(bootstrap_servers="127.0.0.1:1", topics=("t",), out=str(tmp_path / "out"))
    started = time.monotonic()
    with pytest.raises(PipelineFailed, match="no broker accepts a connection"):
        EventPipeline(options).run()
    assert time.monotonic() - started < 5
