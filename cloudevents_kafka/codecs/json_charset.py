"""JSON in charsets other than UTF-8, with escapes for characters that the charset does not contain.

RFC 8259, 7: "Any character may be escaped." Outside of strings, JSON consists of characters that every
charset of Python's codecs contains.
"""

from __future__ import annotations


def encode_json_text(text: str, codec: str) -> bytes:
    r"""Return a JSON text encoded in a charset; the text may change, but its JSON value does not.

    A character is escaped as ``\uXXXX`` if the charset does not contain it, or if its bytes would be decoded
    as another character. For example, Shift JIS encodes a yen sign as the byte of a backslash.
    """
    try:
        encoded = text.encode(codec)
        if encoded.decode(codec) == text:
            return encoded
    except UnicodeError:
        pass
    return text.translate({ord(sign): _escape(sign) for sign in set(text) if not _has(codec, sign)}).encode(
        codec
    )


def _has(codec: str, sign: str) -> bool:
    try:
        return sign.encode(codec).decode(codec) == sign
    except UnicodeError:
        return False


def _escape(sign: str) -> str:
    units = sign.encode("utf-16-be").hex()  # RFC 8259, 7: "encoded as a 12-character sequence" beyond U+FFFF
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
