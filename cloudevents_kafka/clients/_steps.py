"""`Steps`: what is done with a client, in an order that is the same for threads and for asyncio.

A function that needs answers of a client is a generator: it yields each call as an `Ask`, and gets the answer
or the error there. A loop makes the calls: `perform` in the current thread, `clients.aio` by awaiting them.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

from cloudevents_kafka.clients._closing import set_back
from cloudevents_kafka.clients._protocols import member_id

T = TypeVar("T")


class Ask:
    """A call of a client: a method of confluent-kafka's consumer, ``set_back``, or ``sleep``."""

    __slots__ = ("arguments", "name", "options")

    def __init__(self, name: str, *arguments: Any, **options: Any) -> None:
        self.name = name
        self.arguments = arguments
        self.options = options

    def call(self, client: Any) -> Any:
        """Return what the call returns, in the current thread."""
        if self.name == "memberid":
            return member_id(client)
        if self.name == "set_back":
            return set_back(client, *self.arguments, stays=True)
        if self.name == "sleep":
            return time.sleep(*self.arguments)
        return getattr(client, self.name)(*self.arguments, **self.options)


Steps = Generator[Ask, Any, T]


def perform(steps: Steps[T], client: Any) -> T:
    """Make the calls of steps, and return what the steps return."""
    try:
        ask = next(steps)
        while True:
            try:
                answer = ask.call(client)
            except Exception as error:  # noqa: BLE001  # the steps decide
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
