"""The attributes and the data of an event of the official SDK, versions 1 and 2.

Any object with the methods ``get_attributes()`` and ``get_data()`` is such an event.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any


def parts_of(source: Any) -> tuple[dict[str, Any], Any]:
    """Return the attributes of an SDK's event as a new dictionary, and its data, as it returns them.

    Raises `TypeError` if the object has not the methods of such an event.
    """
    try:
        values, data = source.get_attributes(), source.get_data()
    except (AttributeError, TypeError):
        _check_methods(source)
        raise
    if type(values) is dict:
        return values.copy(), data
    if type(values) is MappingProxyType:  # of the SDK's version 1; dict() copies it slowly
        try:
            values = values | {}
        except TypeError:  # not all mappings have the operator
            values = dict(values)
    return (values if type(values) is dict else dict(values)), data


def _check_methods(source: object) -> None:
    """Raise `TypeError` if an object has not the methods of an SDK's event."""
    if not all(callable(getattr(source, name, None)) for name in ("get_attributes", "get_data")):
        raise TypeError(
            f"an event must have get_attributes() and get_data(), got a {type(source).__name__}"
        ) from None
