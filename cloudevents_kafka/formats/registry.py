"""The event formats, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, Protocol, runtime_checkable

from cloudevents_kafka.attributes.extension_types import registration_lock
from cloudevents_kafka.event import Event


@runtime_checkable
class Format(Protocol):
    """An event format, pure and total.

    ``name`` is the media type's suffix. ``encode`` raises `EncodeError` for an event
    that the format cannot hold; ``decode`` raises `InvalidEvent` for bytes that are no
    event, and nothing else for any bytes. What else a registered one raises, or what
    makes it, is taken for that too, with its cause.
    """

    @property
    def name(self) -> str:
        """The suffix of the media type."""

    def encode(self, event: Event) -> bytes:
        """Write an event as a value."""

    def decode(self, value: bytes) -> Event:
        """Read the event that a value holds."""


def _json() -> Format:
    from cloudevents_kafka.formats.json import JsonFormat

    return JsonFormat()


def _avro() -> Format:
    from cloudevents_kafka.formats.avro import AvroFormat  # fastavro takes a while to load

    return AvroFormat()


def _protobuf() -> Format:
    from cloudevents_kafka.formats.protobuf import ProtobufFormat

    return ProtobufFormat()


def _avro_compact() -> Format:
    from cloudevents_kafka.formats.avro_compact import AvroCompactFormat

    return AvroCompactFormat()


def _java_avro_compact() -> Format:
    from cloudevents_kafka.formats.avro_compact import JavaAvroCompactFormat

    return JavaAvroCompactFormat()


_OWN: Final[dict[str, Callable[[], Format]]] = {
    "json": _json,
    "avro": _avro,
    "protobuf": _protobuf,
    "avro-compact": _avro_compact,
    "avrocompact": _java_avro_compact,
}
_READ_ONLY: Final = ("avrocompact",)
_registered: Final[dict[str, Callable[[], Format]]] = {}
_makers: Final = dict(_OWN)
_formats: Final[dict[str, Format]] = {}


def media_type_of(name: str) -> str:
    """Return the media type of a format: what its content-type header says."""
    return f"application/cloudevents+{name}"


@cache
def content_type_of(name: str) -> bytes:
    """Return the value of the content-type header for a format."""
    return media_type_of(name).encode()


def names() -> tuple[str, ...]:
    """Return the names of all formats that can be found."""
    return tuple(_makers)


def writable() -> tuple[str, ...]:
    """Return the names of the formats that events can be written in."""
    return tuple(name for name in _makers if name not in _READ_ONLY or name in _registered)


def find(name: str | None) -> Format | None:
    """Return the format of that name, or None where it is not known here; raises what its maker raises."""
    found = _formats.get(name)  # type: ignore[arg-type]  # None is simply not there
    return _made(name) if found is None and name is not None else found


def _made(name: str) -> Format | None:
    """Make a format that was not used yet; None where it is not known."""
    with registration_lock:
        if name not in _formats and name in _makers:
            made: object = _makers[name]()
            if not isinstance(made, Format):
                raise TypeError(
                    f"the maker of event format {name!r} must return what has name, encode and decode, "
                    f"got a {type(made).__name__}"
                )
            _formats[name] = made
        return _formats.get(name)


def register_format(name: str, make: Callable[[], Format]) -> None:
    """Make a format known in this process, in place of one of that name if there is.

    ``make`` is called once, when the format is first used: a class, or a function that
    gives the format. `ValueError` for a name that cannot be a media type's suffix,
    `TypeError` for a ``make`` that cannot be called.
    """
    if not callable(make):
        raise TypeError(
            f"a {type(make).__name__} cannot be called: give what makes the format, such as its class"
        )
    if (
        not isinstance(name, str)
        or not name
        or not name.replace("-", "").replace(".", "").isalnum()
        or name != name.lower()
        or not name.isascii()
    ):
        raise ValueError(
            f"{name!r} cannot be the suffix of a media type: lower-case letters, digits, '-' and '.'"
        )
    with registration_lock:
        restore({**_registered, name: make})


def registered() -> dict[str, Callable[[], Format]]:
    """Return what makes the formats that were registered."""
    with registration_lock:
        return dict(_registered)


def restore(makers: Mapping[str, Callable[[], Format]]) -> None:
    """Have these formats registered, and no others but the library's own."""
    with registration_lock:
        for known, wanted in ((_registered, makers), (_makers, {**_OWN, **makers})):
            changed = {name for name in known if known[name] is not wanted.get(name)}
            known.update(wanted)  # before anything goes, as other threads are reading
            for name in changed:
                _formats.pop(name, None)
                if name not in wanted:
                    del known[name]
