"""WireBroker07: a broker of Kafka 0.7, in memory, for tests.

Offsets are byte positions; a fetch gives the bytes of one segment, cut where the client's size
ends; producing is never answered, and what is wrong with it ends the connection.
"""

from __future__ import annotations

import random
import re
import threading
import time
from bisect import bisect_right
from collections import deque
from types import TracebackType
from typing import Final, Self

from cloudevents_kafka.protocol.errors import ProtocolError
from cloudevents_kafka.protocol.schema import Structure
from cloudevents_kafka.protocol.v07 import (
    ANY_PARTITION,
    EARLIEST,
    LATEST,
    FetchRequest,
    FetchResponse,
    MessageSet,
    MultiFetchRequest,
    MultiFetchResponse,
    MultiProduceRequest,
    OffsetsRequest,
    OffsetsResponse,
    ProduceRequest,
    frames,
)
from cloudevents_kafka.protocol.v07.error_codes import ErrorCode
from cloudevents_kafka.testing.wire_broker.errors import Hangup
from cloudevents_kafka.testing.wire_broker.listener import Connection, Listener

_MOST_FRAME: Final = 100 * 1024 * 1024
_REMEMBERED: Final = 10_000
_FOLDER: Final = re.compile(r"(?!\.{1,2}\Z)[^/\0]{1,255}\Z")


class Segments:
    """The log of a partition: ``starts`` are the positions at which its segments begin."""

    def __init__(self, segment_bytes: int) -> None:
        """Begin with one empty segment."""
        self.starts: Final = [0]
        self._data: Final = [bytearray()]
        self._written: Final = [time.time() * 1000]
        self._segment_bytes: Final = segment_bytes

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.starts[-1] + len(self._data[-1])

    def append(self, message: bytes) -> None:
        """Append a message; once a segment is larger than it should be, the next one begins."""
        self._data[-1] += message
        self._written[-1] = time.time() * 1000
        if len(self._data[-1]) > self._segment_bytes:
            self.starts.append(self.end)
            self._data.append(bytearray())
            self._written.append(self._written[-1])

    def read(self, position: int, most: int) -> bytes:
        """Return bytes of the segment that has the position, and of no other."""
        number = bisect_right(self.starts, position) - 1
        within = position - self.starts[number]
        return bytes(self._data[number][within : within + most])

    def before(self, milliseconds: int) -> list[int]:
        """Return the starts of segments last written to before a time, the end for LATEST; highest first."""
        if milliseconds == EARLIEST:
            return [0]
        if milliseconds == LATEST:
            return sorted({*self.starts, self.end}, reverse=True)
        written = zip(self.starts, self._written, strict=True)
        return sorted((start for start, at in written if at <= milliseconds), reverse=True)


class WireBroker07:
    """A broker of Kafka 0.7 on 127.0.0.1, ``port``; each topic has so many ``partitions``.

    `requests` has what was asked and understood, `notes` why connections were closed.
    """

    def __init__(self, *, partitions: int = 1, segment_bytes: int = 1 << 29) -> None:
        """Prepare; ``with`` listens."""
        self.partitions: Final = partitions
        self.requests: Final[deque[Structure]] = deque(maxlen=_REMEMBERED)
        self.notes: Final[deque[str]] = deque(maxlen=_REMEMBERED)
        self.host: Final = "127.0.0.1"
        self._segment_bytes: Final = segment_bytes
        self._logs: Final[dict[tuple[str, int], Segments]] = {}
        self._lock: Final = threading.Lock()
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        """Listen."""
        self._listener = Listener(self._serve, name="WireBroker07")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections and end all threads."""
        if self._listener is not None:
            self._listener.stop()

    @property
    def port(self) -> int:
        """The port it listens on; RuntimeError before it does."""
        if self._listener is None:
            raise RuntimeError("the broker does not listen yet: enter it by with")
        return self._listener.port

    def log(self, topic: str, partition: int = 0) -> Segments:
        """Return a partition's log, made if there is none."""
        return self._logs.setdefault((topic, partition), Segments(self._segment_bytes))

    def _serve(self, connection: Connection) -> None:
        try:
            while (frame := connection.frame(_MOST_FRAME)) is not None:
                request = frames.decode_request(frame)
                self.requests.append(request)
                with self._lock:
                    response = self._handled(request)
                if response is not None and not connection.send(frames.encode_response(response)):
                    return
        except Hangup as hangup:
            self.notes.append(hangup.reason)
        except ProtocolError as error:
            self.notes.append(f"{type(error).__name__}: {error}")

    def _handled(self, request: Structure) -> Structure | None:
        match request:
            case ProduceRequest():
                self._produce(request)
            case MultiProduceRequest():
                for part in request.produces:
                    self._produce(part)
            case FetchRequest():
                return self._fetch(request)
            case MultiFetchRequest():
                parts = [self._fetch(part) for part in request.fetches]
                return MultiFetchResponse(error_code=ErrorCode.NO_ERROR, responses=frames.joined(parts))
            case OffsetsRequest():
                return self._offsets(request)
        return None

    def _produce(self, asked: ProduceRequest) -> None:
        partition = asked.partition
        if partition == ANY_PARTITION:
            partition = random.randrange(self.partitions)
        if not _FOLDER.match(asked.topic) or not 0 <= partition < self.partitions:
            raise Hangup(f"nothing can be produced to {asked.topic!r}, partition {partition}")
        found = MessageSet(asked.messages)
        bounds = [(entry.offset, entry.next_offset) for entry in found.shallow()]
        if found.partial:
            raise Hangup("the last message of a set is cut")
        for start, end in bounds:
            self.log(asked.topic, partition).append(asked.messages[start:end])

    def _fetch(self, asked: FetchRequest) -> FetchResponse:
        log = self._logs.get((asked.topic, asked.partition))
        if not _FOLDER.match(asked.topic):
            return FetchResponse(error_code=ErrorCode.UNKNOWN)
        if not 0 <= asked.partition < self.partitions:
            return FetchResponse(error_code=ErrorCode.WRONG_PARTITION)
        if asked.max_size < 0:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SIZE)
        if log is None:
            return FetchResponse(error_code=ErrorCode.NO_ERROR)
        if not 0 <= asked.offset <= log.end:
            return FetchResponse(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        return FetchResponse(error_code=ErrorCode.NO_ERROR, messages=log.read(asked.offset, asked.max_size))

    def _offsets(self, asked: OffsetsRequest) -> OffsetsResponse:
        if not _FOLDER.match(asked.topic) or not 0 <= asked.partition < self.partitions:
            raise Hangup(f"there are no offsets of {asked.topic!r}, partition {asked.partition}")
        found = self.log(asked.topic, asked.partition).before(asked.time)
        return OffsetsResponse(error_code=ErrorCode.NO_ERROR, offsets=found[: max(0, asked.max_number)])
