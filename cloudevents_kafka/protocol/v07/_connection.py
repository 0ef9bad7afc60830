"""A blocking connection to one broker of Kafka 0.7, with a timeout for each call."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self, TypeAlias, TypeVar

from cloudevents_kafka.protocol.errors import (
    DeadlineExceeded,
    Disconnected,
    Malformed,
    ProtocolError,
    Unencodable,
)
from cloudevents_kafka.protocol.frames import MAX_SIZE, decode_size
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.protocol.v07 import frames
from cloudevents_kafka.protocol.v07._message_set import Entry, Message, MessageSet, encode
from cloudevents_kafka.protocol.v07._messages import (
    LATEST,
    ErrorCode,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    PartitionError,
    ProduceRequest,
)

FETCH_SIZE: Final = 300 * 1024
"""The bytes that a fetch requests: the default of Kafka 0.7's consumer."""
_LENGTH_SIZE: Final = 4
_CHUNK: Final = 1 << 16

Fetch: TypeAlias = Callable[[str, int, int, int], MessageSet]
"""Called with topic, partition, offset and max_size; returns the set at the offset."""

_S = TypeVar("_S", bound=Structure)


class Connection:
    """A connection to the broker at ``host:port``; not thread-safe.

    ``timeout`` is the time of a whole call in seconds, ``max_response_size`` the largest accepted response
    in bytes. Responses have no correlation id, so a call that fails midway, or times out, closes the
    connection: a late response would be taken for the next one. Raises `Disconnected` and
    `DeadlineExceeded`.
    """

    def __init__(
        self, host: str, port: int = 9092, *, timeout: float = 30.0, max_response_size: int = MAX_SIZE
    ) -> None:
        """Connect to the broker."""
        self._where: Final = f"{host}:{port}"
        self._timeout: Final = timeout
        self._max_response_size: Final = max_response_size
        self._socket: socket.socket | None = None
        with self._errors():
            self._socket = socket.create_connection((host, port), timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; do nothing if it is closed."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def produce(self, topic: str, partition: int, messages: Iterable[Message | bytes]) -> None:
        """Append messages to a partition, or to one of the broker's choice (`ANY_PARTITION`).

        The broker creates a new topic. There is no response: a broker that refuses the messages (a wrong
        checksum, a partition out of range, an invalid topic name) closes the connection, and a later
        call raises `Disconnected`.
        """
        self._send_request(_produce(topic, partition, messages))

    def multi_produce(self, parts: Iterable[tuple[str, int, Iterable[Message | bytes]]]) -> None:
        """Append messages to several partitions; each part is (topic, partition, messages).

        Like `produce`; the broker may append the parts before one that it refuses.
        """
        self._send_request(MultiProduceRequest(produces=[_produce(*part) for part in parts]))

    def fetch(self, topic: str, partition: int, offset: int, max_size: int) -> MessageSet:
        """Return up to ``max_size`` bytes of a partition's log from the offset of a message.

        An empty set is the end of the log, or an unknown topic. A set ends with its segment of the log;
        continue at its ``next_offset``. If it has only a partial message, use a larger size. `messages`
        does all this. Raises `PartitionError`.
        """
        request = FetchRequest(topic=_topic(topic), partition=partition, offset=offset, max_size=max_size)
        answer = self._exchange(request, FetchResponse)
        _check(answer.error_code, topic, partition, offset)
        return MessageSet(answer.messages, offset)

    def multi_fetch(self, parts: Sequence[FetchRequest]) -> list[MessageSet | PartitionError]:
        """Return the sets of several fetches by one request, with errors as values."""
        for part in parts:
            _topic(part.topic)
        answer = self._exchange(MultiFetchRequest(fetches=list(parts)), MultiFetchResponse)
        _check(answer.error_code, "multi-fetch", -1)
        answers = frames.split_responses(answer.responses)
        if len(answers) != len(parts):
            raise Malformed(
                f"the response must have {len(parts)} parts, got {len(answers)}", path="MultiFetchResponse"
            )
        return [_part(asked, response) for asked, response in zip(parts, answers, strict=True)]

    def offsets(self, topic: str, partition: int, time: int = LATEST, max_number: int = 1) -> list[int]:
        """Return the start offsets of the segments last written before a time, highest first.

        ``time`` is in milliseconds since 1970; `LATEST` adds the end of the log, `EARLIEST` is its start
        only. The broker closes the connection if the partition does not exist.
        """
        request = OffsetsRequest(topic=_topic(topic), partition=partition, time=time, max_number=max_number)
        answer = self._exchange(request, OffsetsResponse)
        _check(answer.error_code, topic, partition)
        return answer.offsets

    def messages(
        self,
        topic: str,
        partition: int,
        offset: int = 0,
        *,
        max_size: int = FETCH_SIZE,
        max_message_size: int = MAX_SIZE,
    ) -> Iterator[Entry]:
        """Return an iterator over the messages from an offset to the end of the log.

        Fetches request ``max_size`` bytes, and more for a larger message. Raises `PartitionError`, and
        `Malformed` for a message of more than ``max_message_size`` bytes.
        """
        return read_log(
            self.fetch, topic, partition, offset, max_size=max_size, max_message_size=max_message_size
        )

    def _send_request(self, request: Structure) -> None:
        raw = frames.encode_request(request)
        with self._connected() as (connected, deadline):
            _send(connected, raw, deadline)

    def _exchange(self, request: Structure, answer: type[_S]) -> _S:
        raw = frames.encode_request(request)
        with self._connected() as (connected, deadline):
            _send(connected, raw, deadline)
            size = decode_size(_receive(connected, _LENGTH_SIZE, deadline), max_size=self._max_response_size)
            return frames.decode_response(answer, _receive(connected, size, deadline))

    @contextmanager
    def _connected(self) -> Iterator[tuple[socket.socket, float]]:
        """Close the connection if the body raises."""
        if self._socket is None:
            raise Disconnected(f"{self._where}: the connection is closed; open another one")
        done = False
        try:
            with self._errors():
                yield self._socket, time.monotonic() + self._timeout
            done = True
        finally:
            if not done:
                self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ProtocolError:
            raise
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._where}: the call took more than {self._timeout:g} s") from error
        except (OSError, OverflowError, UnicodeError) as error:  # a port beyond 65535, an invalid host name
            raise Disconnected(f"{self._where}: {error}") from error


def _produce(topic: str, partition: int, messages: Iterable[Message | bytes]) -> ProduceRequest:
    return ProduceRequest(topic=_topic(topic), partition=partition, messages=encode(messages))


def _topic(name: str) -> str:
    """Return the name if it is valid for a folder; for others the broker fails or disconnects."""
    if not name or not name.isascii() or "/" in name or "\0" in name:
        raise Unencodable(f"the topic must be a folder name in ASCII, got {name!r}")
    return name


def _check(code: int, topic: str, partition: int, offset: int | None = None) -> None:
    if code != ErrorCode.NO_ERROR:
        raise PartitionError(code, topic, partition, offset)


def _part(request: FetchRequest, response: FetchResponse) -> MessageSet | PartitionError:
    if response.error_code != ErrorCode.NO_ERROR:
        return PartitionError(response.error_code, request.topic, request.partition, request.offset)
    return MessageSet(response.messages, request.offset)


def _send(connected: socket.socket, raw: bytes, deadline: float) -> None:
    connected.settimeout(_left(deadline))
    connected.sendall(raw)


def _receive(connected: socket.socket, size: int, deadline: float) -> bytes:
    out = bytearray()
    while len(out) < size:
        connected.settimeout(_left(deadline))
        got = connected.recv(min(size - len(out), _CHUNK))
        if not got:
            raise Disconnected(
                f"the broker closed the connection after {len(out)} of {size} bytes; "
                "Kafka 0.7 does so for a request that it refuses, also for an earlier produce request"
            )
        out += got
    return bytes(out)


def _left(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left


def read_log(
    fetch: Fetch, topic: str, partition: int, offset: int, *, max_size: int, max_message_size: int
) -> Iterator[Entry]:
    """Yield all messages from an offset to the end of the log.

    A set ends with its segment of the log, so only an empty set is the end of the log. A partial message
    is requested again in full, if it has at most ``max_message_size`` bytes. To continue later, start
    at the last entry's ``next_offset``. Raises the errors of ``fetch``, and `Malformed` or `Corrupt` if
    no message starts at the offset.
    """
    size = first_size = max(max_size, 1)
    while (found := fetch(topic, partition, offset, size)).data:
        yield from found
        if found.next_offset == offset:
            size = _larger(found, f"{topic}[{partition}]", size, max_message_size)
        else:
            offset, size = found.next_offset, first_size


def _larger(cut: MessageSet, partition: str, size: int, max_message_size: int) -> int:
    """Return the fetch size that a partial message needs."""
    raw = cut.data
    needed = 4 + int.from_bytes(raw[:4], "big") if len(raw) >= 4 else 4
    if len(raw) < size:
        raise Malformed(
            f"{partition}: a message of {needed} bytes ends after {len(raw)} of {size} requested bytes; "
            "check that a message starts at this offset",
            at=cut.offset,
        )
    if needed > max_message_size:
        raise Malformed(
            f"{partition}: a message must have at most {max_message_size} bytes, got {needed}; "
            "check that a message starts at this offset",
            at=cut.offset,
        )
    return max(needed, size + 1)
