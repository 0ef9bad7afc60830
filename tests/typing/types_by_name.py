"""Types by the names of events; tests/test_typing.py compares what type checkers reveal with the comments."""

from dataclasses import dataclass
from typing import reveal_type

import pydantic

from cloudevents_kafka import AsyncEventConsumer, Decoded, Event, EventConsumer
from cloudevents_kafka.clients.typed_data import by_type, read_as
from cloudevents_kafka.testing import FakeConsumer


@dataclass
class Placed:
    number: int


@dataclass
class Cancelled:
    number: int


class Model(pydantic.BaseModel):
    number: int


class Other(pydantic.BaseModel):
    number: int


def length(event: Event) -> int:
    return len(event.payload or b"")


def strict(client: FakeConsumer) -> None:
    for item in EventConsumer(client, strict=True, data_type={"a": Placed, "b": Cancelled}):
        reveal_type(item.event.data)  # Placed | Cancelled | Any
    for item in EventConsumer(client, strict=True, data_type={"a": Model, "b": Other, "c": length}):
        reveal_type(item.event.data)  # Model | Other | int | Any
    for item in EventConsumer(client, strict=True, data_type={"a": Placed}):
        reveal_type(item.event.data)  # Placed | Any


def either(client: FakeConsumer) -> None:
    for item in EventConsumer(client, data_type={"a": Placed, "b": Model}):
        if isinstance(item, Decoded):
            reveal_type(item.event.data)  # Placed | Model | Any


async def waiting(client: FakeConsumer) -> None:
    async for item in AsyncEventConsumer(client, data_type={"a": Placed, "b": Model}, strict=True):
        reveal_type(item.event.data)  # Placed | Model | Any
    async for each in AsyncEventConsumer(client, data_type={"a": Placed, "b": length}):
        if isinstance(each, Decoded):
            reveal_type(each.event.data)  # Placed | int | Any


def hooks(event: Event) -> None:
    reveal_type(by_type({"a": Placed, "b": Cancelled})(event))  # Placed | Cancelled | Any
    reveal_type(by_type({"a": read_as(Placed), "b": length})(event))  # Placed | int | Any
