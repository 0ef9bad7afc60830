"""Messages and message sets of Kafka 0.7. A message set is a range of the bytes of a log.

::

    LENGTH int32, MAGIC int8 = 0, CRC32, payload
    LENGTH int32, MAGIC int8 = 1, ATTRIBUTES int8, CRC32, payload

LENGTH is the size of the following bytes. The checksum covers only the payload. A message set may contain
messages of magic 0 and of magic 1. The lowest two bits of ATTRIBUTES are the compression codec; the payload
of a compressed message is a message set.

The offset of a message is the index of its first byte in the partition's log, and the next offset is
``offset + 4 + LENGTH``. The bytes do not show where a message starts: at an offset that is not the start of a
message, the magic or the checksum is wrong.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.errors import Corrupt, Malformed, Truncated, Unencodable
from cloudevents_kafka.protocol.records import Codec
from cloudevents_kafka.protocol.records.compression import LIMIT, compress
from cloudevents_kafka.protocol.records.nesting import Nesting

_LENGTH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_MIN_LENGTH: Final = 5  # magic and checksum


class Message(NamedTuple):
    """A message without a key. Magic 0 (before 0.7) has no attributes.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> v07.encode([v07.Message(b"17", magic=0)]).hex()
        '00000007003f39b0423137'
    """

    payload: bytes
    magic: int = 1
    attributes: int = 0

    @property
    def codec(self) -> Codec:
        """The compression codec of the payload; raises `Malformed` for the unknown codec 3."""
        number = self.attributes & 3
        if number > Codec.SNAPPY:
            raise Malformed(f"the codec must be 0 (none), 1 (gzip) or 2 (snappy) in Kafka 0.7, got {number}")
        return Codec(number)


class Entry(NamedTuple):
    """A message with its offset, and the offset from which to continue after the message.

    All messages in a compressed message set have the offset of the compressed message. In a compressed
    message set, the ``next_offset`` of the last message is the offset after the compressed message. The
    ``next_offset`` of each other message in the set is the offset of the compressed message.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> [entry.next_offset for entry in v07.MessageSet(v07.encode([b"17", b"18"]))]
        [12, 24]
    """

    message: Message
    offset: int
    next_offset: int


def encode(messages: Iterable[Message | bytes]) -> bytes:
    """Return the bytes of a message set; a payload (bytes) becomes a message of magic 1.

    Raises `Unencodable` for a message with an invalid field.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> v07.encode([b"17"]).hex()
        '0000000801003f39b0423137'
    """
    return b"".join(_encoded(m if isinstance(m, Message) else Message(m)) for m in messages)


def pack(messages: Iterable[Message | bytes], codec: Codec) -> Message:
    """Return a message whose payload is a compressed message set.

    Raises `Unsupported` if the codec's library is not installed.
    """
    if codec not in {Codec.GZIP, Codec.SNAPPY}:
        raise Unencodable(f"the codec must be GZIP or SNAPPY in Kafka 0.7, got {codec.name}")
    return Message(compress(encode(messages), codec), attributes=codec)


@dataclass(frozen=True, slots=True)
class MessageSet:
    """A range of a log; the range may end within a message, and even within the LENGTH of a message.

    Iteration yields each `Entry`, including the entries of compressed message sets. ``limit`` is the largest
    decompressed size of one message in bytes. Iteration raises `Malformed` or `Corrupt` at the first bytes
    that are not a message.

    Examples:
        >>> from cloudevents_kafka.protocol import v07
        >>> messages = v07.MessageSet(v07.encode([b"17", b"18"]), offset=100)
        >>> [(entry.offset, entry.message.payload) for entry in messages], messages.next_offset
        ([(100, b'17'), (112, b'18')], 124)
    """

    data: bytes
    offset: int = 0
    limit: int = LIMIT

    def __iter__(self) -> Iterator[Entry]:
        """Yield all messages, including the messages in compressed message sets."""
        for entry in self.shallow():
            if entry.message.codec is Codec.NONE:
                yield entry
            else:
                yield from _inner(entry, self.limit)

    def shallow(self) -> Iterator[Entry]:
        """Yield the messages as they are in the log, without decompression."""
        at = 0
        while (end := self._end(at)) is not None:
            yield Entry(self._message(at, end), self.offset + at, self.offset + end)
            at = end

    @property
    def partial(self) -> bytes:
        """The bytes of the partial message at the end of the message set; raises `Malformed`."""
        at = 0
        while (end := self._end(at)) is not None:
            at = end
        return self.data[at:]

    @property
    def next_offset(self) -> int:
        """The offset after the last complete message of the message set; raises `Malformed`."""
        return self.offset + len(self.data) - len(self.partial)

    def _end(self, at: int) -> int | None:
        """Return the end of the message at an index, or None if the message is partial."""
        if len(self.data) - at < _LENGTH.size:
            return None
        length: int = _LENGTH.unpack_from(self.data, at)[0]
        magic = self.data[at + 4 : at + 5]
        minimum = _MIN_LENGTH + (magic == b"\1")
        if length < minimum or magic > b"\1":
            raise Malformed(
                f"a message must have at least {minimum} bytes and magic 0 or 1, got {length} bytes"
                f"{f' and magic {magic[0]}' if magic else ''}; check that a message starts at this offset",
                at=self.offset + at,
            )
        end = at + _LENGTH.size + length
        return end if end <= len(self.data) else None  # S2-F1: "you get half a message at the end"

    def _message(self, at: int, end: int) -> Message:
        magic = self.data[at + 4]
        start = at + 5 + magic  # only magic 1 has attributes
        attributes = int.from_bytes(self.data[at + 5 : start], signed=True)
        (expected,) = _CRC.unpack_from(self.data, start)
        payload = self.data[start + _CRC.size : end]
        if (crc := zlib.crc32(payload)) != expected:
            raise Corrupt(
                f"the checksum must be {crc:08x}, got {expected:08x}; "
                "check that a message starts at this offset",
                at=self.offset + at,
            )
        return Message(payload, magic, attributes)


def _encoded(message: Message) -> bytes:
    payload, magic, attributes = message
    if not isinstance(payload, bytes):
        raise Unencodable(f"the payload must be bytes, got {type(payload).__name__}")
    if magic not in {0, 1} or attributes not in (range(-128, 128) if magic else (0,)):
        raise Unencodable(
            f"the magic must be 0 or 1, and the attributes of magic 1 must be an int8, "
            f"got magic {magic} and attributes {attributes}"
        )
    head = struct.pack(">bb", magic, attributes)[: 1 + magic] + _CRC.pack(zlib.crc32(payload))
    return _LENGTH.pack(len(head) + len(payload)) + head + payload


def _inner(entry: Entry, limit: int) -> Iterator[Entry]:
    """Yield the messages in a compressed message.

    The last message has the ``next_offset`` of the compressed message. The ``next_offset`` of each other
    message is the ``offset`` of the compressed message.
    """
    before, failed = None, None
    try:
        for message in _messages(entry.message, Nesting(limit, len(entry.message.payload))):
            if before is not None:
                yield Entry(before, entry.offset, entry.offset)
            before = message
    except (Malformed, Truncated) as error:
        kind = Corrupt if isinstance(error, Corrupt) else Malformed
        failed = kind(f"in a compressed set: {error}", at=entry.offset)
        failed.__cause__ = error
    if before is not None:
        yield Entry(before, entry.offset, entry.offset if failed else entry.next_offset)
    if failed is not None:
        raise failed


def _messages(message: Message, nesting: Nesting, depth: int = 0) -> Iterator[Message]:
    """Yield a message, or the messages in a compressed message that is nested in ``depth`` other messages."""
    if message.codec is Codec.NONE:
        yield message
        return
    inner = MessageSet(nesting.decompress(message.payload, message.codec, depth))
    for entry in inner.shallow():
        yield from _messages(entry.message, nesting, depth + 1)
    if inner.partial:
        raise Malformed(
            f"a compressed set must end with a complete message, got {len(inner.partial)} more bytes"
        )
