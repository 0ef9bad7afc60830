"""`check_reachable` checks whether a broker can be reached, before the slow start of Spark."""

from __future__ import annotations

import re
import socket
from typing import Final

from cloudevents_kafka.primitives.redaction import mask_url
from cloudevents_kafka.spark.pipeline._errors import PipelineFailed

_SECONDS: Final = 10.0  # the longest time that a connection to one address may take
_ADDRESS: Final = re.compile(r"(?:\w+://)?\[?([^\[\]]+?)\]?:(\d{1,5})")  # as Kafka's Java client reads it


def check_reachable(bootstrap_servers: str) -> None:
    """Raise `PipelineFailed` if none of the bootstrap servers accepts a connection.

    `check_reachable` does not send any data, so it does not check the login. Spark's client checks the login
    later.
    """
    reasons = []
    for text in filter(None, map(str.strip, bootstrap_servers.split(","))):
        address = _ADDRESS.fullmatch(text)
        if address is None or int(address[2]) > 65535:
            return  # later, Java's error says what is wrong with the address
        try:
            socket.create_connection((address[1], int(address[2])), _SECONDS).close()
        except OSError as error:
            reasons.append(f"{mask_url(text)} ({error.strerror or error})")
        else:
            return
    raise PipelineFailed(
        f"no broker accepts a connection: {', '.join(reasons)}; check the bootstrap servers, and that a "
        "broker listens there"
    )
