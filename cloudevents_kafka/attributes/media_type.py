"""Media types (RFC 2046): this module parses those parts of a content type that CloudEvents use.

Media types are compared without regard to case; the event stores the text as received (core:
datacontenttype). Any text can be parsed. If the text is not a valid media type, the field ``valid`` of the
result is False.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import Final

import msgspec

from cloudevents_kafka.primitives.bounded import MAX_KEY_LENGTH, remember

CLOUDEVENTS: Final = "application/cloudevents"

# A token of RFC 2045 5.1: any ASCII but space, control characters and ()<>@,;:\"/[]?=.
_WORD: Final = r"[!#$%&'*+.^_`{|}~0-9A-Za-z-]++"
_VALUE: Final = rf'(?:{_WORD}|"(?>(?:[^"\\\x00-\x1f\x7f]++|\\[ -~])*)")'
_PARAMETERS: Final = re.compile(rf"(?>(?:[ \t]*+;[ \t]*+{_WORD}={_VALUE})*)[ \t]*+")
_PARAMETER: Final = re.compile(rf"[ \t]*+;[ \t]*+({_WORD})=({_VALUE})")
_ESSENCE: Final = re.compile(rf"({_WORD})/({_WORD})")
_FORMAT: Final = re.compile(r"application/cloudevents\+([a-z0-9.-]+)")
_ASCII: Final = "us-ascii"
_UTF8: Final = ("utf-8", "utf8", _ASCII)
_WITHOUT_ALIAS: Final = (
    "cp720 cp737 cp856 cp875 cp1006 koi8_t koi8_u mac_arabic mac_croatian mac_farsi mac_romanian palmos"
)
# The codecs of charsets by name. codecs.lookup() would search for a Python module with an unknown name, and
# would store the name without a limit. Some codecs of Python are not charsets: idna and punycode, whose cost
# is quadratic, and unicode_escape.
_CHARSETS: Final = {
    name.lower(): codec
    for alias, codec in [
        *aliases.items(),
        ("windows_874", "cp874"),
        *((codec, codec) for codec in _WITHOUT_ALIAS.split()),
    ]
    for name in (alias, codec)
    if not codec.endswith("_codec") and codec not in ("mbcs", "rot_13")
}
_BATCH: Final = "application/cloudevents-batch"


class MediaType(msgspec.Struct, frozen=True):
    """A parsed media type; ``essence`` is ``type/subtype`` in lower case.

    ``charset`` is the value of the parameter ``charset``, or None. ``utf8`` says whether text with this media
    type is encoded in UTF-8. ``ascii`` says whether such text must be ASCII. ``format`` is the name of an
    event format, such as ``"json"`` for the media type ``application/cloudevents+json``, or None.
    ``cloudevents`` says whether the media type starts like the media type of an event. ``batch`` says whether
    the media type starts like the media type of a batch of events (Kafka binding 3).
    """

    essence: str
    valid: bool
    charset: str | None
    utf8: bool
    ascii: bool
    is_json: bool
    is_utf8_json: bool
    is_text: bool
    cloudevents: bool
    batch: bool
    format: str | None


def python_codec(media: MediaType) -> str:
    """Return the name of Python's codec for the charset of a media type. The default charset is UTF-8.

    Raises `LookupError` if the charset is unknown, or if it is the name of a codec that does not encode text.
    """
    if media.charset is None:
        return "utf-8"
    codec = _CHARSETS.get(normalize_encoding(media.charset).lower())
    if codec is None:
        raise LookupError(f"charset must be the name of a text codec of Python, got {media.charset[:60]!r}")
    return codec


def _parse(text: str) -> MediaType:
    essence = text.partition(";")[0].strip(" \t").lower()  # compared without regard to case
    match = _ESSENCE.match(text)
    subtype = essence.partition("/")[2]
    suffix = _FORMAT.fullmatch(essence)
    valid = match is not None and _PARAMETERS.fullmatch(text, match.end()) is not None
    charset = _charset(text, match.end()) if match is not None and valid else None
    # J-08: "has the form `*/json` or `*/*+json`"
    is_json = bool(match) and (subtype == "json" or subtype.endswith("+json"))
    utf8 = charset is None or charset.lower() in _UTF8
    return MediaType(
        essence=essence,
        valid=valid,
        charset=charset,
        utf8=utf8,
        ascii=utf8 and charset is not None and charset.lower() == _ASCII,
        is_json=is_json,
        is_utf8_json=is_json and utf8,
        is_text=essence.startswith("text/"),
        # K-09: "prefixed with the CloudEvents media type"
        cloudevents=text[: len(CLOUDEVENTS)].lower() == CLOUDEVENTS,
        batch=essence.startswith(_BATCH),
        format=None if suffix is None else suffix[1],
    )


def _charset(text: str, at: int) -> str | None:
    """Return the unquoted value of the first parameter named ``charset``, or None."""
    if "charset" not in text.lower():
        return None
    while match := _PARAMETER.match(text, at):
        name, value = match.groups()
        if name.lower() == "charset":
            # A longer value is not the name of a charset.
            quoted = value[0] == '"' and len(value) <= MAX_KEY_LENGTH
            return re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else value
        at = match.end()
    return None


class _MediaTypes(dict[str, MediaType]):
    """A cache of parsed media types; the records of a topic use only a few different media types."""

    def __missing__(self, text: str) -> MediaType:
        return remember(self, text, _parse(text))


media_type: Final[Callable[[str], MediaType]] = _MediaTypes().__getitem__
"""Return the `MediaType` of any content-type text; the results are cached."""
