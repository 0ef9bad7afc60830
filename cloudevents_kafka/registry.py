"""Register event formats, data codecs and extension types for the whole process.

* `register_format`: registers an event format for the suffix of its media type;
* `register_codec`: registers a data codec for a content type;
* `register_extension`: registers the type and the rules of an extension attribute.

In tests, use ``with temporarily():``, which restores the previous registrations at the end of its block. All
threads share the registrations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from cloudevents_kafka.attributes import extension_types
from cloudevents_kafka.attributes.extension_types import register_extension
from cloudevents_kafka.codecs import registry as codecs
from cloudevents_kafka.codecs.registry import register_codec
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.registry import register_format
from cloudevents_kafka.primitives.locks import registration_lock

__all__ = ["register_codec", "register_extension", "register_format", "temporarily"]

Registered = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Registered extensions and formats, which can be passed to another process."""


def registered() -> Registered:
    """Return the registrations that another process needs to read the same events; see `register_all`.

    The result contains no codecs, since codecs may contain open connections. The other process needs no
    codecs, because event data is passed to it as bytes.
    """
    return extension_types.registered(), formats.registered()


_adopted: Final[list[dict[str, Any]]] = [{}, {}]  # extensions and formats that `register_all` added last


def register_all(others: Registered) -> None:
    """Register the extensions and formats of another process; replace registrations of the same names.

    A Python worker of Spark may serve several drivers, so each call removes the registrations of the previous
    call.
    """
    with registration_lock:
        for n, (module, added) in enumerate(zip((extension_types, formats), others, strict=True)):
            present: Mapping[str, Any] = module.registered()
            own = {name: value for name, value in present.items() if _adopted[n].get(name) is not value}
            wanted = {**own, **added}
            if wanted.keys() != present.keys() or any(wanted[name] is not present[name] for name in wanted):
                module.restore(wanted)
            _adopted[n] = {name: value for name, value in added.items() if own.get(name) is not value}


@contextmanager
def temporarily() -> Iterator[None]:
    """Return a context manager that restores all registrations at the end of its block, for all threads.

    Examples:
        >>> from cloudevents_kafka import Codec, Event
        >>> from cloudevents_kafka.registry import register_codec, temporarily
        >>> with temporarily():
        ...     register_codec("text/csv", Codec(bytes.split))
        >>> Event(id="1", source="/shop", type="t", datacontenttype="text/csv", data=b"a b").data
        'a b'
    """
    modules = (extension_types, formats, codecs)
    with registration_lock:
        before = [module.registered() for module in modules]
    try:
        yield
    finally:
        with registration_lock:
            for module, registrations in zip(modules, before, strict=True):
                module.restore(registrations)
