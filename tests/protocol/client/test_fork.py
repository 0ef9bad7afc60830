"""Clients in a child that was forked after they were made."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
from cloudevents_kafka.protocol import EARLIEST, Client, ClientError, TopicPartition

client = Client(sys.argv[1], timeout=10)
client.partitions("t")
producer = client.producer()
producer.produce("t", b"1")
assert producer.flush(20) == 0
consumer = client.consumer(auto_commit=None)
consumer.assign([TopicPartition("t", 0, EARLIEST)])
assert consumer.poll(20).value() == b"1"
child = os.fork()
if not child:
    calls = {
        "metadata": client.metadata,
        "produce": lambda: producer.produce("t", b"2"),
        "seek": lambda: consumer.seek(TopicPartition("t", 0, EARLIEST)),
    }
    for name, call in calls.items():
        try:
            call()
            print(name, "is done", flush=True)
        except ClientError as error:
            print(name, "got a child" in str(error), flush=True)
    for one in (producer, consumer, client):
        one.close()
    with Client(sys.argv[1], timeout=10) as own, own.producer() as another:
        another.produce("t", b"3")
        print(another.flush(20), flush=True)
    os._exit(0)
os.waitpid(child, 0)
assert consumer.poll(20).value() == b"3"
producer.produce("t", b"4")
print(producer.flush(20), client.partitions("t"), consumer.poll(20).value())
for one in (producer, consumer, client):
    one.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_child_is_refused(broker):
    """A child does not use the connections of its parent, whose frames would be mixed up, and ends none."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, broker.bootstrap_servers],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr) == (
        "metadata True\nproduce True\nseek True\n0\n0 [0] b'4'\n",
        "",
    )
    assert len({call.connection for call in broker.calls()}) == 4  # three of the parent, one of the child
    assert broker.connection_errors == []
