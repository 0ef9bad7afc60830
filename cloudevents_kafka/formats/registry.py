"""The registry of event formats, which finds a format by the suffix of its media type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Final, Protocol, runtime_checkable

from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.locks import registration_lock
from cloudevents_kafka.primitives.plural import with_article


@runtime_checkable
class Format(Protocol):
    """An event format: two functions without side effects.

    The method ``encode`` raises `EncodeError` if the format cannot represent the event. The method ``decode``
    raises `InvalidEvent` for bytes that are not a valid event, and no other exception. If a format that users
    registered, or its factory, raises any other exception, the caller receives an `EncodeError` or an
    `InvalidEvent` with that exception as its cause.

    Examples:
        >>> import json
        >>> from cloudevents_kafka import Event, register_format, to_record
        >>> class Pairs:
        ...     name = "pairs"
        ...     def encode(self, event: Event) -> bytes:
        ...         return json.dumps([[name, event.text(name)] for name in event]).encode()
        ...     def decode(self, value: bytes) -> Event:
        ...         return Event(**dict(json.loads(value)))
        >>> register_format("pairs", Pairs)
        >>> to_record(Event(id="1", source="/shop", type="t"), mode="structured", format="pairs").value
        b'[["specversion", "1.0"], ["id", "1"], ["source", "/shop"], ["type", "t"]]'
    """

    @property
    def name(self) -> str:
        """The suffix of the format's media type, such as ``json``."""

    def encode(self, event: Event) -> bytes:
        """Return an event as a structured value of this format."""

    def decode(self, value: bytes) -> Event:
        """Return the event that a structured value of this format contains."""


def _create_built_in(module: str, name: str) -> Format:
    """Import and return a built-in format at its first use, because importing fastavro takes long."""
    created: Format = getattr(import_module(f"cloudevents_kafka.formats.{module}"), name)()
    return created


_BUILT_IN: Final[dict[str, Callable[[], Format]]] = {
    "json": partial(_create_built_in, "json", "JsonFormat"),
    "avro": partial(_create_built_in, "avro", "AvroFormat"),
    "protobuf": partial(_create_built_in, "protobuf", "ProtobufFormat"),
    "avro-compact": partial(_create_built_in, "avro_compact", "AvroCompactFormat"),
    "avrocompact": partial(_create_built_in, "avro_compact", "JavaAvroCompactFormat"),
}
_METHODS: Final = ("encode", "decode")  # only an instance must have a name
_SUFFIX: Final = re.compile(r"[.-]*[a-z0-9][a-z0-9.-]*")
_READ_ONLY: Final = ("avrocompact",)
_registered: Final[dict[str, Callable[[], Format]]] = {}
_factories: Final = dict(_BUILT_IN)
_formats: Final[dict[str, Format]] = {}


def media_type_of(name: str) -> str:
    """Return the media type of a format with this name."""
    return f"application/cloudevents+{name}"


@cache
def content_type_of(name: str) -> bytes:
    """Return the value of the content-type header for a format with this name."""
    return media_type_of(name).encode()


def names() -> tuple[str, ...]:
    """Return the names of all registered formats."""
    return tuple(_factories)


def writable() -> tuple[str, ...]:
    """Return the names of the formats that can write events."""
    return tuple(name for name in tuple(_factories) if name not in _READ_ONLY or name in _registered)


def find(name: str | None) -> Format | None:
    """Return a format, or None if it is not registered; the format's factory may raise any exception."""
    form = _formats.get(name)  # type: ignore[arg-type]  # a dictionary has no key None
    return _create(name) if form is None and name is not None else form


def _create(name: str) -> Format | None:
    """Return a format, which is created at its first use; return None if it is not registered."""
    with registration_lock:
        if name not in _formats and name in _factories:
            created: object = _factories[name]()
            if not isinstance(created, Format):
                raise TypeError(
                    f"the factory of event format {name!r} must return an object with name, encode and "
                    f"decode, got {with_article(type(created).__name__)}"
                )
            _formats[name] = created
        return _formats.get(name)


def register_format(name: str, make: Callable[[], Format]) -> None:
    """Register an event format in this process, in place of a registered format with the same name.

    ``make`` is a class or a function without arguments that returns the format; it is called once, at the
    first use of the format. Raises `ValueError` if ``name`` cannot be the suffix of a media type, and
    `TypeError` if ``make`` is not callable.

    Examples:
        >>> from cloudevents_kafka import Event, register_format, to_record
        >>> from cloudevents_kafka.formats.json import JsonFormat
        >>> register_format("json", lambda: JsonFormat(text_data=True))
        >>> event = Event(id="1", source="/", type="t", datacontenttype="text/plain", data=b"9")
        >>> to_record(event, mode="structured").value
        b'{"specversion":"1.0","id":"1","source":"/","type":"t","datacontenttype":"text/plain","data":"9"}'
    """
    if not callable(make):
        raise TypeError(
            f"make must be callable, such as the class of the format, got {with_article(type(make).__name__)}"
        )
    if not (isinstance(name, str) and _SUFFIX.fullmatch(name)):
        raise ValueError(
            f"name must be a suffix of a media type, of lower-case letters, digits, '-' and '.', got {name!r}"
        )
    if isinstance(make, type) and (missing := [one for one in _METHODS if not hasattr(make, one)]):
        raise TypeError(
            f"make must return an object with name, encode and decode, got the class {make.__name__}, which "
            f"has no {' and no '.join(missing)}; pass the class of a format"
        )
    with registration_lock:
        restore({**_registered, name: make})


def registered() -> dict[str, Callable[[], Format]]:
    """Return the factories of the formats that users registered, as a dictionary by name."""
    with registration_lock:
        return dict(_registered)


def restore(factories: Mapping[str, Callable[[], Format]]) -> None:
    """Make ``factories`` the only formats that users have registered; remove all others."""
    with registration_lock:
        for current, new in ((_registered, factories), (_factories, {**_BUILT_IN, **factories})):
            changed = {name for name in current if current[name] is not new.get(name)}
            current.update(new)  # before any entry is removed, since other threads read
            for name in changed:
                _formats.pop(name, None)
                if name not in new:
                    del current[name]
