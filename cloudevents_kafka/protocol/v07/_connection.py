"""A connection to one broker of Kafka 0.7: blocking, with a deadline for each call."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self, TypeVar

from cloudevents_kafka.protocol.errors import (
    DeadlineExceeded,
    Disconnected,
    Malformed,
    ProtocolError,
    Unencodable,
)
from cloudevents_kafka.protocol.frames import MAX_SIZE, decode_size
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.protocol.v07 import _consumer as consumer
from cloudevents_kafka.protocol.v07 import frames
from cloudevents_kafka.protocol.v07._message_set import Entry, Message, MessageSet, encode
from cloudevents_kafka.protocol.v07._messages import (
    LATEST,
    FetchRequest,
    FetchResponse,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
)
from cloudevents_kafka.protocol.v07.error_codes import PartitionError

_LENGTH_SIZE: Final = 4
_CHUNK: Final = 1 << 16
_S = TypeVar("_S", bound=Structure)


class Connection:
    """Talks to the broker at ``host:port``; ``timeout`` are seconds for a whole call.

    Answers have no correlation id. So when a call fails midway, by a deadline too, the connection
    is closed: what came later would be taken for the answer to the next request. Open another
    one then. Not for several threads at once. Raises `Disconnected`, `DeadlineExceeded`.

    ``max_response_size`` is the largest response in bytes.
    """

    def __init__(
        self, host: str, port: int = 9092, *, timeout: float = 30.0, max_response_size: int = MAX_SIZE
    ) -> None:
        """Connect."""
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
        """Close the connection; a second time does nothing."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def produce(self, topic: str, partition: int, messages: Iterable[Message | bytes]) -> None:
        """Append messages to a partition (`ANY_PARTITION`: the broker picks one); a new topic comes to be.

        There is no answer: that this returns says only that the bytes are on their way. A broker that
        refuses them (a checksum, a partition too high, a topic that is no name of a folder)
        closes the connection, which a later call then finds out.
        """
        self._tell(_produce(topic, partition, messages))

    def multi_produce(self, parts: Iterable[tuple[str, int, Iterable[Message | bytes]]]) -> None:
        """Append messages to several partitions by one request; parts are topic, partition, messages.

        As `produce`; what came before a part that is refused may have been appended.
        """
        self._tell(MultiProduceRequest(produces=[_produce(*part) for part in parts]))

    def fetch(self, topic: str, partition: int, offset: int, max_size: int) -> MessageSet:
        """Read up to ``max_size`` bytes of a partition's log from a message's offset on.

        No bytes at all: the log ends here, or the topic is unknown. The set ends where a segment
        of the log ends, even if there is more; ask again at its ``next_offset``. If it has a part of
        a message only, ask with a larger size. `messages` does all this. Raises `PartitionError`.
        """
        request = FetchRequest(topic=_topic(topic), partition=partition, offset=offset, max_size=max_size)
        answer = self._ask(request, FetchResponse)
        _check(answer.error_code, topic, partition, offset)
        return MessageSet(answer.messages, offset)

    def multi_fetch(self, parts: Sequence[FetchRequest]) -> list[MessageSet | PartitionError]:
        """Do several fetches by one request; give what each of them would give, errors as values."""
        for part in parts:
            _topic(part.topic)
        answer = self._ask(MultiFetchRequest(fetches=list(parts)), MultiFetchResponse)
        _check(answer.error_code, "multi-fetch", -1)
        answers = frames.split(answer.responses)
        if len(answers) != len(parts):
            raise Malformed(f"{len(answers)} answers to {len(parts)} fetches", path="MultiFetchResponse")
        return [_part(asked, given) for asked, given in zip(parts, answers, strict=True)]

    def offsets(self, topic: str, partition: int, time: int = LATEST, max_number: int = 1) -> list[int]:
        """Give offsets where segments begin that were last written to before a time, the highest first.

        ``time`` are milliseconds since 1970; `LATEST` puts the end of the log in front, `EARLIEST`
        gives its start alone. A broker closes the connection where there is no such partition.
        """
        request = OffsetsRequest(topic=_topic(topic), partition=partition, time=time, max_number=max_number)
        answer = self._ask(request, OffsetsResponse)
        _check(answer.error_code, topic, partition)
        return answer.offsets

    def messages(
        self,
        topic: str,
        partition: int,
        offset: int = 0,
        *,
        max_size: int = consumer.MAX_SIZE,
        max_message_size: int = MAX_SIZE,
    ) -> Iterator[Entry]:
        """Give all messages from an offset to the end of the log; see `reading.messages`."""
        return consumer.messages(
            self.fetch, topic, partition, offset, max_size=max_size, max_message_size=max_message_size
        )

    def _tell(self, request: Structure) -> None:
        raw = frames.encode_request(request)
        with self._exchange() as (connected, deadline):
            _send(connected, raw, deadline)

    def _ask(self, request: Structure, answer: type[_S]) -> _S:
        raw = frames.encode_request(request)
        with self._exchange() as (connected, deadline):
            _send(connected, raw, deadline)
            size = decode_size(_receive(connected, _LENGTH_SIZE, deadline), max_size=self._max_response_size)
            return frames.decode_response(answer, _receive(connected, size, deadline))

    @contextmanager
    def _exchange(self) -> Iterator[tuple[socket.socket, float]]:
        """Close the connection unless all goes well, whatever it is that ends it midway."""
        if self._socket is None:
            raise Disconnected(f"{self._where}: this connection is closed; open another one")
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
            raise DeadlineExceeded(f"{self._where}: not done in {self._timeout:g} s") from error
        except (OSError, OverflowError, UnicodeError) as error:  # of a port beyond 65535, a bad host name
            raise Disconnected(f"{self._where}: {error}") from error


def _produce(topic: str, partition: int, messages: Iterable[Message | bytes]) -> ProduceRequest:
    return ProduceRequest(topic=_topic(topic), partition=partition, messages=encode(messages))


def _topic(name: str) -> str:
    """Return the name if a broker can take it for a folder's; else it answers -1 or closes the connection."""
    if not name or not name.isascii() or "/" in name or "\0" in name:
        raise Unencodable(f"the topic {name!r}: it is the name of a folder, in ASCII and without '/'")
    return name


def _check(code: int, topic: str, partition: int, offset: int | None = None) -> None:
    if code != 0:
        raise PartitionError(code, topic, partition, offset)


def _part(asked: FetchRequest, given: FetchResponse) -> MessageSet | PartitionError:
    if given.error_code != 0:
        return PartitionError(given.error_code, asked.topic, asked.partition, asked.offset)
    return MessageSet(given.messages, asked.offset)


def _send(connected: socket.socket, raw: bytes, deadline: float) -> None:
    connected.settimeout(_left(deadline))
    connected.sendall(raw)  # its timeout is for all of them


def _receive(connected: socket.socket, size: int, deadline: float) -> bytes:
    out = bytearray()
    while len(out) < size:
        connected.settimeout(_left(deadline))
        got = connected.recv(min(size - len(out), _CHUNK))
        if not got:
            raise Disconnected(
                f"the broker closed the connection after {len(out)} of {size} bytes; 0.7 does so "
                "on a request that it refuses, or after a produce request that it refused before"
            )
        out += got
    return bytes(out)


def _left(deadline: float) -> float:
    if (left := deadline - time.monotonic()) <= 0:
        raise TimeoutError
    return left
