"""`WireBroker07`: a broker of Kafka 0.7, in memory, for tests.

Offsets are byte positions. A fetch returns bytes of one segment, cut at the client's size. Produce
requests are never answered; an error in one closes the connection.
"""

from __future__ import annotations

import random
import re
import threading
import time
from bisect import bisect_right
from collections import deque
from typing import Final, Self

from cloudevents_kafka.protocol import v07
from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.protocol.v07 import messages as messages_v07
from tests.support.wire_broker._errors import CloseConnection
from tests.support.wire_broker._listener import ClientSocket, Listener

_MAX_FRAME: Final = 100 * 1024 * 1024
_HISTORY: Final = 10_000
_TOPIC_NAME: Final = re.compile(r"(?!\.{1,2}\Z)[^/\0]{1,255}\Z")


class SegmentedLog:
    """The log of a partition; ``starts`` has the position of each segment.

    Examples:
        >>> from cloudevents_kafka.protocol.v07 import LATEST
        >>> from wire_broker import SegmentedLog
        >>> log = SegmentedLog(segment_bytes=4)
        >>> for message in (b"12345", b"678"):
        ...     log.append(message)
        >>> log.before(LATEST)
        [8, 5, 0]
    """

    def __init__(self, segment_bytes: int) -> None:
        self.starts: Final = [0]
        self._data: Final = [bytearray()]
        self._written: Final = [time.time() * 1000]
        self._segment_bytes: Final = segment_bytes

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.starts[-1] + len(self._data[-1])

    def append(self, message: bytes) -> None:
        """Append a message; after a segment that exceeds ``segment_bytes`` the next one begins."""
        self._data[-1] += message
        self._written[-1] = time.time() * 1000
        if len(self._data[-1]) > self._segment_bytes:
            self.starts.append(self.end)
            self._data.append(bytearray())
            self._written.append(self._written[-1])

    def read(self, position: int, size: int) -> bytes:
        """Return bytes of the segment that contains the position, and of no other."""
        number = bisect_right(self.starts, position) - 1
        within = position - self.starts[number]
        return bytes(self._data[number][within : within + size])

    def before(self, milliseconds: int) -> list[int]:
        """Return the starts of segments last written before a time, highest first.

        v07.LATEST adds the end, v07.EARLIEST is position 0 alone.
        """
        if milliseconds == v07.EARLIEST:
            return [0]
        if milliseconds == v07.LATEST:
            return sorted({*self.starts, self.end}, reverse=True)
        written = zip(self.starts, self._written, strict=True)
        return sorted((start for start, at in written if at <= milliseconds), reverse=True)


class WireBroker07:
    """A broker of Kafka 0.7 on 127.0.0.1; each topic has ``partitions`` partitions.

    `requests` has the requests that it understood, `connection_errors` the reasons for connections
    that it closed.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> from wire_broker import WireBroker07
        >>> with WireBroker07() as broker, v07.Connection("127.0.0.1", broker.port) as connection:
        ...     connection.produce("orders", 0, [b"17"])
        ...     connection.offsets("orders", 0)
        [12]
    """

    def __init__(self, *, partitions: int = 1, segment_bytes: int = 1 << 29) -> None:
        self.partitions: Final = partitions
        self.requests: Final[deque[Structure]] = deque(maxlen=_HISTORY)
        self.connection_errors: Final[deque[str]] = deque(maxlen=_HISTORY)
        self.host: Final = "127.0.0.1"
        self._segment_bytes: Final = segment_bytes
        self._logs: Final[dict[tuple[str, int], SegmentedLog]] = {}
        self._lock: Final = threading.Lock()
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        """Listen."""
        self._listener = Listener(self._serve, name="WireBroker07")
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections and end all threads."""
        if self._listener is not None:
            self._listener.stop()

    @property
    def port(self) -> int:
        """The port; raises `RuntimeError` before the broker listens."""
        if self._listener is None:
            raise RuntimeError("the broker does not listen yet; enter it by with")
        return self._listener.port

    def log(self, topic: str, partition: int = 0) -> SegmentedLog:
        """Return a partition's log, created if it is missing."""
        return self._logs.setdefault((topic, partition), SegmentedLog(self._segment_bytes))

    def _serve(self, client: ClientSocket) -> None:
        try:
            while (frame := client.read_frame(_MAX_FRAME)) is not None:
                request = v07.frames.decode_request(frame)
                self.requests.append(request)
                with self._lock:
                    response = self._handle(request)
                if response is not None and not client.send(v07.frames.encode_response(response)):
                    return
        except CloseConnection as close:
            self.connection_errors.append(str(close))
        except ProtocolError as error:
            self.connection_errors.append(f"{type(error).__name__}: {error}")

    def _handle(self, request: Structure) -> Structure | None:
        match request:
            case messages_v07.ProduceRequest():
                self._produce(request)
            case messages_v07.MultiProduceRequest():
                for part in request.produces:
                    self._produce(part)
            case messages_v07.FetchRequest():
                return self._fetch(request)
            case messages_v07.MultiFetchRequest():
                parts = [self._fetch(part) for part in request.fetches]
                return messages_v07.MultiFetchResponse(
                    error_code=v07.ErrorCode.NO_ERROR, responses=v07.frames.join_responses(parts)
                )
            case messages_v07.OffsetsRequest():
                return self._offsets(request)
        return None

    def _produce(self, request: messages_v07.ProduceRequest) -> None:
        partition = request.partition
        if partition == messages_v07.ANY_PARTITION:
            partition = random.randrange(self.partitions)
        if not _TOPIC_NAME.match(request.topic) or not 0 <= partition < self.partitions:
            raise CloseConnection(f"cannot produce to {request.topic!r}, partition {partition}")
        messages = v07.MessageSet(request.messages)
        bounds = [(entry.offset, entry.next_offset) for entry in messages.shallow()]
        if messages.partial:
            raise CloseConnection("the last message of a set is truncated")
        for start, end in bounds:
            self.log(request.topic, partition).append(request.messages[start:end])

    def _fetch(self, request: messages_v07.FetchRequest) -> messages_v07.FetchResponse:
        log = self._logs.get((request.topic, request.partition))
        code, messages = v07.ErrorCode.NO_ERROR, b""
        if not _TOPIC_NAME.match(request.topic):
            code = v07.ErrorCode.UNKNOWN
        elif not 0 <= request.partition < self.partitions:
            code = v07.ErrorCode.WRONG_PARTITION
        elif request.max_size < 0:
            code = v07.ErrorCode.INVALID_FETCH_SIZE
        elif log is not None and not 0 <= request.offset <= log.end:
            code = v07.ErrorCode.OFFSET_OUT_OF_RANGE
        elif log is not None:
            messages = log.read(request.offset, request.max_size)
        return messages_v07.FetchResponse(error_code=code, messages=messages)

    def _offsets(self, request: messages_v07.OffsetsRequest) -> messages_v07.OffsetsResponse:
        if not _TOPIC_NAME.match(request.topic) or not 0 <= request.partition < self.partitions:
            raise CloseConnection(f"{request.topic!r} has no partition {request.partition}")
        found = self.log(request.topic, request.partition).before(request.time)
        return messages_v07.OffsetsResponse(
            error_code=v07.ErrorCode.NO_ERROR, offsets=found[: max(0, request.max_number)]
        )
