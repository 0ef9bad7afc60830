"""Messages of Kafka 0.7, and sets of them: stretches of the log, as they lie on the broker's disk.

::

    LENGTH int32, MAGIC int8 = 0, CRC32, payload
    LENGTH int32, MAGIC int8 = 1, ATTRIBUTES int8, CRC32, payload

LENGTH counts what follows it, the checksum is over the payload alone, and one set may have
both magics. The lowest two bits of ATTRIBUTES are the codec of the payload, which then is
a set itself.

A message's offset is the position of its first byte in the partition's log, so the next one
is at ``offset + 4 + LENGTH``. Nothing marks where messages begin: bytes from any other
position read as garbage, which the magic and the checksum tell.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, NamedTuple

from cloudevents_kafka.protocol.codec import compiler
from cloudevents_kafka.protocol.errors import Corrupt, Malformed, Truncated, Unencodable
from cloudevents_kafka.protocol.records import LIMIT, Codec, compress, decompress
from cloudevents_kafka.protocol.schema import Int8, MessageSpec, Rest, Structure, UInt32, wire

MOST_NESTED: Final = 8
"""How deep compressed sets may lie in each other; writers make one level."""

_LENGTH: Final = struct.Struct(">i")
_MAGIC: Final = struct.Struct(">b")
_LEAST: Final = 5  # magic and checksum


class Body(Structure, kw_only=True):
    """What follows LENGTH and MAGIC; its version is the magic."""

    spec: ClassVar = MessageSpec.of("Message", -1, "data", versions="0-1")

    attributes: Annotated[Int8, wire("1+")] = 0
    crc: UInt32
    payload: Rest


class Message(NamedTuple):
    """A message; 0.7 has no keys. Magic 0 (before 0.7) has no attributes."""

    payload: bytes
    magic: int = 1
    attributes: int = 0

    @property
    def codec(self) -> Codec:
        """How the payload, a set then, is compressed; `Malformed` for 3, which is none in 0.7."""
        number = self.attributes & 3
        if number > Codec.SNAPPY:
            raise Malformed(f"codec {number} is none; Kafka 0.7 has 0 none, 1 gzip and 2 snappy")
        return Codec(number)


class Entry(NamedTuple):
    """A message with its offset, and the one to go on from when it is done.

    Those out of a compressed set have no place of their own: all have the offset of the
    one that holds them, and only from the last of them does it go on behind that.
    """

    message: Message
    offset: int
    next_offset: int


def encode(messages: Iterable[Message | bytes]) -> bytes:
    """Encode a set; bytes are the payload of a message with magic 1. `Unencodable`."""
    return b"".join(_encoded(m if isinstance(m, Message) else Message(m)) for m in messages)


def pack(messages: Iterable[Message | bytes], codec: Codec) -> Message:
    """Compress a set into one message; `Unsupported` where the codec is not installed."""
    if codec not in {Codec.GZIP, Codec.SNAPPY}:
        raise Unencodable(f"codec {codec.name}: Kafka 0.7 compresses by GZIP or SNAPPY")
    return Message(compress(encode(messages), codec), attributes=codec)


@dataclass(frozen=True, slots=True)
class MessageSet:
    """A stretch of a log; its last message may be cut, even within its LENGTH.

    Iterating gives each `Entry`, those of compressed sets too, of which no more than ``limit``
    bytes are unpacked for one message. `Malformed` or `Corrupt` where bytes are no
    message, after all those before them.
    """

    data: bytes
    offset: int = 0
    limit: int = LIMIT

    def __iter__(self) -> Iterator[Entry]:
        """Give all messages, unpacked."""
        for entry in self.shallow():
            if entry.message.codec is Codec.NONE:
                yield entry
            else:
                yield from _inner(entry, self.limit)

    def shallow(self) -> Iterator[Entry]:
        """Give the messages as they lie in the log, the compressed ones packed."""
        at = 0
        while (end := self._end(at)) is not None:
            yield Entry(self._message(at, end), self.offset + at, self.offset + end)
            at = end

    @property
    def partial(self) -> bytes:
        """The bytes of the message that is cut at the end, maybe none; `Malformed` for garbage."""
        at = 0
        while (end := self._end(at)) is not None:
            at = end
        return self.data[at:]

    @property
    def next_offset(self) -> int:
        """Where the message after the last whole one begins; `Malformed` for garbage."""
        return self.offset + len(self.data) - len(self.partial)

    def _end(self, at: int) -> int | None:
        """Return where the message ends that begins here; None if it is cut."""
        if len(self.data) - at < _LENGTH.size:
            return None
        length: int = _LENGTH.unpack_from(self.data, at)[0]
        magic = self.data[at + 4 : at + 5]
        least = _LEAST + (magic == b"\1")
        if length < least or magic > b"\1":
            seen = f" and magic {magic[0]}" if magic else ""
            raise Malformed(
                f"a length of {length}{seen}: a message has {least} bytes at least and magic 0 or 1; "
                "does one begin at this offset?",
                at=self.offset + at,
            )
        end = at + _LENGTH.size + length
        return end if end <= len(self.data) else None

    def _message(self, at: int, end: int) -> Message:
        magic = self.data[at + 4]
        body, _ = compiler.decode(Body, magic, self.data[at + 5 : end])
        assert isinstance(body, Body)
        if (crc := zlib.crc32(body.payload)) != body.crc:
            raise Corrupt(
                f"the checksum is {body.crc:08x}, that of the payload {crc:08x}; "
                "does a message begin at this offset?",
                at=self.offset + at,
            )
        return Message(body.payload, magic, body.attributes)


def _encoded(message: Message) -> bytes:
    if not isinstance(message.payload, bytes):
        raise Unencodable(f"a payload of {type(message.payload).__name__}; it is bytes, b'' for nothing")
    if message.magic not in {0, 1}:
        raise Unencodable(f"magic {message.magic}; Kafka 0.7 has 0 and 1")
    body = Body(attributes=message.attributes, crc=zlib.crc32(message.payload), payload=message.payload)
    raw = _MAGIC.pack(message.magic) + compiler.encode(body, message.magic)
    return _LENGTH.pack(len(raw)) + raw


def _inner(entry: Entry, limit: int) -> Iterator[Entry]:
    """Give the messages within one; resuming after any but the last begins with this one again."""
    before, failed = None, None
    try:
        for message in _Unpacking(limit).messages(entry.message, MOST_NESTED):
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


class _Unpacking:
    """Unpacks the sets within one message, all together to no more than a limit."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def messages(self, message: Message, depth: int) -> Iterator[Message]:
        if message.codec is Codec.NONE:
            yield message
            return
        if depth == 0:
            raise Malformed(f"compressed sets lie deeper than {MOST_NESTED} in each other")
        inner = MessageSet(decompress(message.payload, message.codec, limit=self.left))
        self.left -= len(inner.data)
        for entry in inner.shallow():
            yield from self.messages(entry.message, depth - 1)
        if inner.partial:
            raise Malformed(f"{len(inner.partial)} bytes at the end are a cut message; only a fetch cuts")
