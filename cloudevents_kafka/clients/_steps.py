"""`Steps`: generators that yield client calls; threads and asyncio run the same generators.

A function that needs answers from a Kafka client is a generator. The generator yields each client call as an
`Ask`. The ``yield`` expression returns the answer of the call, or raises the error of the call. `perform`
makes the calls in the current thread; `clients.aio` awaits the calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, TypeVar

from cloudevents_kafka.clients._closing import set_back
from cloudevents_kafka.clients._protocols import member_id, stores_offsets

T = TypeVar("T")


class Ask:
    """A client call: a method of confluent-kafka's consumer, or a function in ``_OTHERS``."""

    __slots__ = ("arguments", "name", "options")

    def __init__(self, name: str, *arguments: Any, **options: Any) -> None:
        self.name = name
        self.arguments = arguments
        self.options = options

    def call(self, client: Any) -> Any:
        """Make this client call in the current thread, and return the result of the call."""
        if (other := _OTHERS.get(self.name)) is not None:
            return other(client, *self.arguments)
        return getattr(client, self.name)(*self.arguments, **self.options)


_OTHERS: Final[dict[str, Callable[..., Any]]] = {
    "memberid": member_id,
    "stores_offsets": stores_offsets,
    "set_back": partial(set_back, stays=True),
    "sleep": lambda _, seconds: time.sleep(seconds),
}


Steps = Generator[Ask, Any, T]


def perform(steps: Steps[T], client: Any) -> T:
    """Make, in this thread, the client calls that a generator yields; return the generator's result."""
    try:
        ask = next(steps)
        while True:
            try:
                answer = ask.call(client)
            except Exception as error:  # noqa: BLE001  # the generator decides what to do
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
