"""What users add in this process: event formats, data codecs, extension types.

Three functions register them, each from then on for all events:

* `register_format`: how a whole event becomes a value, by the suffix of its media type;
* `register_codec`: how data becomes a Python value, by its content type;
* `register_extension`: the type of an extension attribute, and its rules.

What is registered inside ``with temporarily():`` is forgotten afterwards, which is
what tests want. Threads share it all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cloudevents_kafka import codecs, formats
from cloudevents_kafka.attributes import extension_types
from cloudevents_kafka.attributes.extension_types import register_extension, registration_lock
from cloudevents_kafka.codecs.registry import register_codec
from cloudevents_kafka.formats.registry import register_format

__all__ = [
    "register_all",
    "register_codec",
    "register_extension",
    "register_format",
    "registered",
    "temporarily",
]

Registered = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The extensions and formats that a process has registered, for another one."""


def registered() -> Registered:
    """Return what another process has to `register_all` to read the same events.

    Codecs are not among it: they may hold connections, and data travels as bytes.
    """
    return extension_types.registered(), formats.registered()


def register_all(theirs: Registered) -> None:
    """Register what another process has `registered`; quick where that was done."""
    with registration_lock:
        for room, more in zip((extension_types, formats), theirs, strict=True):
            mine = room.registered()
            if any(mine.get(name) is not value for name, value in more.items()):
                room.restore({**mine, **more})


@contextmanager
def temporarily() -> Iterator[None]:
    """Forget at the end of the block what was registered in it, by other threads too."""
    with registration_lock:
        before = extension_types.registered(), formats.registered(), codecs.registered()
    try:
        yield
    finally:
        with registration_lock:
            extension_types.restore(before[0])
            formats.restore(before[1])
            codecs.restore(before[2])
