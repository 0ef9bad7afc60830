"""Read records for the consumers: decode them, map their keys, and read the data of their events.

The function `item_reader` takes the options of an `EventConsumer`, and returns a function. This function
takes a record and returns its item, a `Decoded` or an `Undecodable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from cloudevents_kafka.binding import Decoded, ReverseKeyMapper, Undecodable, decode
from cloudevents_kafka.clients._errors import OnError
from cloudevents_kafka.clients.typed_data import hook_of, read_eagerly
from cloudevents_kafka.errors import BrokenData, DataError
from cloudevents_kafka.event import Event
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.record import Record

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from cloudevents_kafka.clients.observing import Observer

    ItemT_co = TypeVarWithDefault(
        "ItemT_co", bound=Decoded | Undecodable, covariant=True, default=Decoded | Undecodable
    )
else:
    ItemT_co = TypeVar("ItemT_co", covariant=True)

DataReader = Callable[[Event, Record], Any]
"""A function that takes an event and its record, and returns the event data as a Python value.

Examples:
    >>> import json
    >>> from cloudevents_kafka import Event, EventConsumer, Record
    >>> def read(event: Event, record: Record) -> object:
    ...     return record.topic, json.loads(event.payload or b"null")
    >>> item = EventConsumer(consumer, strict=True, data_reader=read).poll()
    >>> item and item.event.data
    ('orders', {'total': '9.50'})
"""


class ReadOptions(TypedDict, total=False):
    """Those options of a consumer that do not change the types of its items."""

    lenient: bool
    reverse_key_mapper: ReverseKeyMapper | None
    data_reader: DataReader | None
    eager_data: bool
    on_error: OnError | None
    topics: Sequence[str] | None
    observers: Sequence[Observer]


def item_reader(
    *,
    strict: bool = False,
    lenient: bool = False,
    reverse_key_mapper: ReverseKeyMapper | None = None,
    data_reader: DataReader | None = None,
    eager_data: bool = False,
    data_type: Any = None,
) -> Callable[[Record], Any]:
    """Return a function that takes a record and returns its item, a `Decoded` or an `Undecodable`.

    With ``strict``, this function raises the error of a record that cannot be decoded.

    Raises `TypeError` if ``data_type`` is not supported, or if a callback is a coroutine function.
    """
    check_callbacks(reverse_key_mapper=reverse_key_mapper, data_reader=data_reader)
    hook = None if data_type is None else hook_of(data_type)
    eager = eager_data or hook is not None
    # A call of a partial takes a twentieth of the time of reading.
    read: Callable[[Record], Decoded | Undecodable] = partial(decode, lenient=True) if lenient else decode

    def read_data(record: Record) -> Decoded | Undecodable:
        item = decode(record, lenient=lenient)
        if not isinstance(item, Decoded):
            return item
        event = item.event if reverse_key_mapper is None else _map_key(reverse_key_mapper, item.event, record)
        if data_reader is not None:
            event = event.read_with(lambda event: data_reader(event, record))
        if eager:
            try:
                event = read_eagerly(event, hook)
            except DataError as error:
                return Undecodable(_broken_data(error, record, event), record)
        return Decoded(event, record, item.tolerated)

    if reverse_key_mapper is not None or data_reader is not None or eager:
        read = read_data
    return partial(_read_strictly, read) if strict else read


def _map_key(mapper: ReverseKeyMapper, event: Event, record: Record) -> Event:
    try:
        return mapper(event, record)
    except Exception as error:  # a user's function may raise any error
        error.add_note(f"while {record.where or 'a record'} was read")
        raise


def _broken_data(error: DataError, record: Record, event: Event) -> BrokenData:
    broken = BrokenData(f"broken data: {error}", record, event)
    broken.__cause__ = error
    return broken


def _read_strictly(read: Callable[[Record], Decoded | Undecodable], record: Record) -> Decoded:
    item = read(record)
    if isinstance(item, Undecodable):
        raise item.error
    return item
