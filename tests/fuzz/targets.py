"""The fuzz targets: functions that accept any bytes and raise only errors of this library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.codec import compiler, interpreter
from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.layout import layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.records import Batches
from cloudevents_kafka.protocol.v07 import MessageSet
from cloudevents_kafka.protocol.v07 import frames as frames07
from tests.fuzz import archive, converters

_LIMIT: Final = 1 << 20  # bytes of decompressed data


def request(data: bytes) -> None:
    """Read a request, write it again and read an equal one."""
    header, message = frames.decode_request(data)
    again = compiler.encode(message, header.request_api_version)
    assert frames.decode_body(type(message), header.request_api_version, again) == message


def response(data: bytes) -> None:
    """Read a response of the API and version in two bytes: compiler and interpreter agree."""
    if len(data) < 2:
        return
    api = list(APIS.values())[data[0] % len(APIS)]
    version = data[1] % (api.versions.last + 1)
    body = data[2:]
    read = compiler.decode(api.response, version, body)
    assert repr(read) == repr(interpreter.decode(layout_of(api.response, version), body))


def records(data: bytes) -> None:
    """Read message sets and record batches; the first byte decides whether checksums are checked."""
    if not data:
        return
    for _ in Batches(data[1:], check_crc=bool(data[0] & 1), limit=_LIMIT).records():
        pass


def request07(data: bytes) -> None:
    """Read a request of Kafka 0.7 and write it again."""
    message = frames07.decode_request(data)
    assert frames07.decode_request(frames07.encode_request(message)[4:]) == message


def messages07(data: bytes) -> None:
    """Read a message set of Kafka 0.7."""
    for _ in MessageSet(data):
        pass


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    **{function.__name__: function for function in (request, response, records, request07, messages07)},
    **converters.TARGETS,
}


def run(target: Callable[[bytes], None], data: bytes) -> None:
    """Run a target; a `ProtocolError` is the expected outcome for invalid bytes."""
    try:
        target(data)
    except ProtocolError:
        return


def corpus(name: str) -> Iterator[bytes]:
    """Yield the inputs in the corpus of a target."""
    for path, data in archive.read().items():
        if path.startswith(f"{name}/"):
            yield data
