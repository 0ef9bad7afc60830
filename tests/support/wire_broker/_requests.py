"""Decodes requests as brokers do.

The codec refuses a frame that breaks the protocol, so that the reader of a response learns of it. Brokers
check less of a request: they replace bytes that are not UTF-8, read any negative length as null, and take
tagged fields in any order, repeatedly, and without a look at the size of those that they know.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

from cloudevents_kafka.protocol.codec import compiler, interpreter
from cloudevents_kafka.protocol.errors import Malformed, Truncated
from cloudevents_kafka.protocol.layout import Array, Layout, LengthPrefixed, layout_of
from cloudevents_kafka.protocol.schema import Structure, Varint

_S = TypeVar("_S", bound=Structure)
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\ufffd"


def decode_request(structure: type[_S], version: int, data: bytes, at: int = 0) -> tuple[_S, int]:
    """Return the message at index ``at`` and the index after it.

    Raises `Unsupported`, and `Malformed` or `Truncated` for bytes that brokers refuse, too.
    """
    try:
        return compiler.decode(structure, version, data, at)
    except (Malformed, Truncated):
        return _Decoder(data).structure(layout_of(structure, version), at, "")  # type: ignore[return-value]


class _Decoder(interpreter.Decoder):
    def text(self, raw: bytes, at: int, path: str) -> str:
        # Java replaces the bytes of a surrogate by one character, Python each of them.
        return _SURROGATE.sub(_REPLACEMENT.encode(), raw).decode(errors="replace")

    def number(self, codec: LengthPrefixed | Array, at: int, path: str) -> tuple[int, int]:
        number, end = super().number(codec, at, path)
        return max(number, -1), end

    def varint(self, at: int, path: str, codec: Varint | None = None) -> tuple[int, int]:
        number, end = super().varint(at, path, codec)
        return number - (1 << 32) if codec is None and number >> 31 else number, end

    def tags(
        self, layout: Layout, at: int, path: str, found: dict[str, Any]
    ) -> tuple[tuple[tuple[int, bytes], ...], int]:
        """Set the declared fields and pass over the others, which brokers do not use."""
        count, at = self.varint(at, path)
        for _ in range(count):
            tag, at = self.varint(at, path)
            size, at = self.varint(at, path)
            if (field := layout.tagged.get(tag)) is not None:
                found[field.name], at = self.value(field.codec, at, path)
            elif size < 0:
                raise Malformed(
                    f"the size of a tagged field must be at least 0, got {size}", at=at, path=path
                )
            else:
                self.take(size, at, path)
                at += size
        return (), at
