"""Functions that read the official SDK's events, and the methods of the SDK's ``BaseCloudEvent``.

Any object with the methods ``get_attributes()`` and ``get_data()`` is accepted as an event of the SDK's
version 1 or 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from cloudevents_kafka.codecs.payload import as_document
from cloudevents_kafka.primitives.plural import with_article


def parts_of(source: Any) -> tuple[dict[str, Any], Any]:
    """Return the attributes of an SDK's event as a new dictionary, and the event's data.

    If ``partitionkey`` is UTF-8 bytes, it becomes a text. If the content type is JSON, a text that is valid
    JSON becomes a ``msgspec.Raw``: see `as_document`. Raises `TypeError` if the object does not have the
    methods of an SDK's event.
    """
    try:
        values, data = source.get_attributes(), source.get_data()
    except (AttributeError, TypeError):
        _check_methods(source)
        raise
    attributes = values.copy() if type(values) is dict else _as_dict(values)
    if type(key := attributes.get("partitionkey")) is bytes:  # version 1 stores the key of a message here
        with suppress(UnicodeDecodeError):  # other bytes are refused
            attributes["partitionkey"] = key.decode()
    if isinstance(data, str):
        data = as_document(data, attributes.get("datacontenttype"), attributes)
    return attributes, data


def _as_dict(values: Mapping[str, Any]) -> dict[str, Any]:
    if type(values) is MappingProxyType:  # of the SDK's version 1; dict() copies it slowly
        try:
            values = values | {}
        except TypeError:  # not all mappings have the operator
            values = dict(values)
    return values if type(values) is dict else dict(values)


def _check_methods(source: object) -> None:
    """Raise `TypeError` if an object does not have the methods of an SDK's event."""
    if not _has_methods(source):
        got, advice = _got(source, "from_record")
        raise TypeError(f"an event must have get_attributes() and get_data(), got {got}; {advice}") from None


def _has_methods(source: object) -> bool:
    if isinstance(source, type):
        return False
    return all(callable(getattr(source, name, None)) for name in ("get_attributes", "get_data"))


def _got(source: object, for_records: str) -> tuple[str, str]:
    """Return a description of an object that is not an event, and advice for the user."""
    if isinstance(source, type):
        return f"the class {source.__name__}", "make one: Event(**attributes, data=…)"
    got = with_article(type(source).__name__)
    if hasattr(source, "value") and hasattr(source, "headers"):  # our record, or a client's
        return got, f"use {for_records}"
    if hasattr(source, "event"):  # an item of a consumer
        return got, "pass its event"
    return got, "make one: Event(**attributes, data=…)"


def check_event(source: object, taker: str) -> None:
    """Raise `TypeError` if an object is not an event; the error message names the function ``taker``."""
    if not _has_methods(source):
        got, advice = _got(source, f"{taker}_record")
        raise TypeError(f"{taker} takes an Event, got {got}; {advice}") from None


class SdkEvent(Protocol):
    """The methods that this library calls on events of the official SDK, version 1 or 2."""

    def get_attributes(self) -> Mapping[str, Any]: ...
    def get_data(self) -> Any: ...


class _Event(Protocol):
    """The properties of `Event` whose values the methods of `SdkMethods` return."""

    @property
    def id(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def specversion(self) -> str: ...
    @property
    def datacontenttype(self) -> str | None: ...
    @property
    def dataschema(self) -> str | None: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def time(self) -> datetime | None: ...
    @property
    def data(self) -> Any: ...
    @property
    def attributes(self) -> Mapping[str, Any]: ...
    def get(self, name: str) -> Any: ...


class SdkMethods:
    """The methods of the SDK's protocol ``BaseCloudEvent``, which `Event` inherits."""

    __slots__ = ()

    def get_id(self: _Event) -> str:
        """Return ``id``."""
        return self.id

    def get_source(self: _Event) -> str:
        """Return ``source``."""
        return self.source

    def get_type(self: _Event) -> str:
        """Return ``type``."""
        return self.type

    def get_specversion(self: _Event) -> str:
        """Return ``specversion``."""
        return self.specversion

    def get_datacontenttype(self: _Event) -> str | None:
        """Return ``datacontenttype``."""
        return self.datacontenttype

    def get_dataschema(self: _Event) -> str | None:
        """Return ``dataschema``."""
        return self.dataschema

    def get_subject(self: _Event) -> str | None:
        """Return ``subject``."""
        return self.subject

    def get_time(self: _Event) -> datetime | None:
        """Return ``time``."""
        return self.time

    def get_extension(self: _Event, extension_name: str) -> Any:
        """Return the value of an extension attribute, or None if the attribute is absent."""
        return self.get(extension_name)

    def get_data(self: _Event) -> Any:
        """Return ``data``."""
        return self.data

    def get_attributes(self: _Event) -> dict[str, Any]:
        """Return a copy of ``attributes`` as a new dictionary."""
        return dict(self.attributes)
