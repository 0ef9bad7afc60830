"""The handlers of requests.

A handler has the name of its API in lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.schema import Structure
from tests.support.wire_broker.apis import (
    _configs,
    _connection,
    _described_groups,
    _fetch,
    _groups,
    _offsets,
    _produce,
    _refused,
    _topics,
)

_MODULES: Final = (
    _configs,
    _connection,
    _described_groups,
    _fetch,
    _groups,
    _offsets,
    _produce,
    _refused,
    _topics,
)
HANDLERS: Final[Mapping[int, Callable[[Any, Any], Structure | None]]] = {
    key: getattr(module, name)
    for module in _MODULES
    for key in ApiKey
    if hasattr(module, name := key.name.lower())
}
"""Functions of a call and its message, called with the cluster's lock held; None sends nothing."""
