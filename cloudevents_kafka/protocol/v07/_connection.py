"""A blocking connection to one broker of Kafka 0.7, with a timeout for each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, TypeVar

from cloudevents_kafka.primitives.closing import Closing
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.protocol.client import Address, Deadline, FrameSocket
from cloudevents_kafka.protocol.errors import Malformed, Unencodable
from cloudevents_kafka.protocol.frames import MAX_SIZE
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.protocol.v07 import frames
from cloudevents_kafka.protocol.v07.message_set import Entry, Message, MessageSet, encode
from cloudevents_kafka.protocol.v07.messages import (
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
"""The default number of bytes that a fetch requests; Kafka 0.7's consumer has the same default."""

Fetch: TypeAlias = Callable[[str, int, int, int], MessageSet]
"""A function that is called with topic, partition, offset and max_size, and returns the message set at the
offset."""

_S = TypeVar("_S", bound=Structure)


class Connection(FrameSocket, Closing):
    """A connection to the broker at ``host:port``; not thread-safe.

    ``timeout`` is the maximum time of a whole call, in seconds; ``max_response_size`` is the maximum size of
    a response, in bytes. Responses have no correlation id, so a call that fails midway or times out closes
    the connection. If the connection stayed open, the client would take the late response for the response to
    the next request. The methods raise `Disconnected` and `DeadlineExceeded`.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> with v07.Connection("localhost", 9070) as connection:
        ...     connection.produce("orders", 0, [b"17", b"18"])
        ...     [entry.message.payload for entry in connection.messages("orders", 0)]
        [b'17', b'18']
    """

    def __init__(
        self, host: str, port: int = 9092, *, timeout: float = 30.0, max_response_size: int = MAX_SIZE
    ) -> None:
        """Connect to the broker."""
        self._timeout: Final = timeout
        super().__init__(Address(host, port), Deadline(timeout), max_frame_bytes=max_response_size)

    def produce(self, topic: str, partition: int, messages: Iterable[Message | bytes]) -> None:
        """Append messages to a partition, or to a partition that the broker chooses (`ANY_PARTITION`).

        The broker creates a topic that does not exist. The broker does not respond. If the broker refuses the
        messages, because of a wrong checksum, a partition out of range or an invalid topic name, the broker
        closes the connection. The next call of `fetch` or `offsets` then raises `Disconnected`. But the
        broker may also close an idle connection, so `produce` first connects again if the connection is
        closed.
        """
        self._produce(_produce(topic, partition, messages))

    def multi_produce(self, parts: Iterable[tuple[str, int, Iterable[Message | bytes]]]) -> None:
        """Append messages to several partitions; an item of ``parts`` is (topic, partition, messages).

        In other respects, `multi_produce` is like `produce`. If the broker refuses one item, the broker may
        have appended the items before this item.
        """
        self._produce(MultiProduceRequest(produces=[_produce(*part) for part in parts]))

    def fetch(self, topic: str, partition: int, offset: int, max_size: int) -> MessageSet:
        """Return up to ``max_size`` bytes of a partition's log, beginning at the offset of a message.

        An empty message set means that the offset is the end of the log, or that the topic is unknown. A
        message set does not extend beyond the end of its log segment; to read more, fetch from the message
        set's ``next_offset``. If the message set contains only a partial message, fetch with a larger size.
        The method `messages` sends such further fetches itself. Raises `PartitionError`.
        """
        request = FetchRequest(topic=_topic(topic), partition=partition, offset=offset, max_size=max_size)
        response = self._exchange(request, FetchResponse)
        _check(response.error_code, topic, partition, offset)
        return MessageSet(response.messages, offset)

    def multi_fetch(self, parts: Sequence[FetchRequest]) -> list[MessageSet | PartitionError]:
        """Send several fetches in one request; return a message set or an error for each fetch."""
        for part in parts:
            _topic(part.topic)
        response = self._exchange(MultiFetchRequest(fetches=list(parts)), MultiFetchResponse)
        _check(response.error_code, "multi-fetch", -1)
        responses = frames.split_responses(response.responses)
        if len(responses) != len(parts):
            raise Malformed(
                f"the response must have {pluralize(len(parts), 'part')}, got {len(responses)}",
                path="MultiFetchResponse",
            )
        return [_part(part, response) for part, response in zip(parts, responses, strict=True)]

    def offsets(self, topic: str, partition: int, time: int = LATEST, max_number: int = 1) -> list[int]:
        """Return the start offsets of the segments whose last write was before a time, highest offset first.

        ``time`` is in milliseconds since 1970. With `LATEST`, the result also contains the end of the log.
        With `EARLIEST`, the result contains only the start of the log. The broker closes the connection if
        the partition does not exist.
        """
        request = OffsetsRequest(topic=_topic(topic), partition=partition, time=time, max_number=max_number)
        response = self._exchange(request, OffsetsResponse)
        _check(response.error_code, topic, partition)
        return response.offsets

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

        Each fetch requests ``max_size`` bytes, or more if a message is larger. Raises `PartitionError`, and
        `Malformed` for a message of more than ``max_message_size`` bytes.
        """
        return read_log(
            self.fetch, topic, partition, offset, max_size=max_size, max_message_size=max_message_size
        )

    def _produce(self, request: Structure) -> None:
        frame, deadline = frames.encode_request(request), Deadline(self._timeout)
        self.check_open()
        if self.ended():
            self.reopen(deadline)
        self.write(frame, deadline)

    def _exchange(self, request: Structure, response: type[_S]) -> _S:
        frame, deadline = frames.encode_request(request), Deadline(self._timeout)
        self.write(frame, deadline)
        try:
            return frames.decode_response(response, self.read(deadline))
        except BaseException:  # KeyboardInterrupt too
            self.close()
            raise

    def disconnect_hint(self) -> str:
        """Return why a broker closes a connection."""
        return (
            "; Kafka 0.7 closes the connection if it refuses a request, or has refused an earlier produce "
            "request"
        )


def _produce(topic: str, partition: int, messages: Iterable[Message | bytes]) -> ProduceRequest:
    return ProduceRequest(topic=_topic(topic), partition=partition, messages=encode(messages))


def _topic(name: str) -> str:
    """Return a topic's name; raise `Unencodable` if the name is not a valid folder name.

    If a client sends an invalid topic name, the broker fails or disconnects.
    """
    # S2-H3: not "illegal on the filesystem"
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


def read_log(
    fetch: Fetch, topic: str, partition: int, offset: int, *, max_size: int, max_message_size: int
) -> Iterator[Entry]:
    """Yield all messages from an offset to the end of the log; see `Connection.messages`.

    To continue later, start at the last entry's ``next_offset``. Raises the errors of ``fetch``, and
    `Malformed` or `Corrupt` if no message starts at the offset.
    """
    size = first_size = max(max_size, 1)
    # S2-F2: a fetch "will not cross the segment boundary", so only an empty set is the end of the log.
    while (fetched := fetch(topic, partition, offset, size)).data:
        yield from fetched
        if fetched.next_offset == offset:
            size = _size_of_partial(fetched, f"{topic}[{partition}]", size, max_message_size)
        else:
            offset, size = fetched.next_offset, first_size


def _size_of_partial(fetched: MessageSet, partition: str, size: int, max_message_size: int) -> int:
    """Return the fetch size that is needed for a message that was fetched only partially."""
    data = fetched.data
    needed = 4 + int.from_bytes(data[:4]) if len(data) >= 4 else 4
    if len(data) < size:
        problem = f"a message of {needed} bytes ends after {len(data)} of {size} requested bytes"
    elif needed > max_message_size:
        problem = f"a message must have at most {max_message_size} bytes, got {needed}"
    else:
        return max(needed, size + 1)
    hint = "check that a message starts at this offset"
    raise Malformed(f"{partition}: {problem}; {hint}", at=fetched.offset)
