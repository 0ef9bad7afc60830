"""The methods of a Kafka client that this library calls, and functions that check arguments.

Any object with these methods is accepted: a client of confluent-kafka, a fake from `testing`, or an object of
a user's class. The methods of a client are checked when the client is passed, not when it is used for the
first time.
"""

from __future__ import annotations

import inspect
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from cloudevents_kafka.primitives.callbacks import is_coroutine_function
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.record import Headers

if TYPE_CHECKING:
    from cloudevents_kafka.clients.observing import Observer
    from cloudevents_kafka.clients.observing.calls import Observers

# The codes of a message that abort_transaction() or purge() has removed, as its caller expects.
PURGED: Final = frozenset((-151, -152))  # _PURGE_INFLIGHT, _PURGE_QUEUE
TOO_LARGE: Final = 10  # MSG_SIZE_TOO_LARGE
FATAL: Final = -150  # _FATAL, of each call after the fatal error
# A producer does not recover from these, but a delivery report does not mark them as fatal.
_ENDED: Final = frozenset((FATAL, -144, 45, 90))  # _FENCED, OUT_OF_ORDER_SEQUENCE_NUMBER, PRODUCER_FENCED
_MOST_RECORDS: Final = 1_000_000  # of one call of confluent-kafka's ``consume``


def code_of(error: Any) -> object:
    """Return the code of an error of any Kafka client, or None for other errors.

    Errors of aiokafka have the code in ``errno``. In an `OSError`, however, ``errno`` is not a code of Kafka.
    """
    code = getattr(error, "code", None)
    if callable(code):
        return code()
    return None if isinstance(error, OSError) else getattr(error, "errno", None)


def find_fatal(error: Any) -> Any:
    """Return the error that has ended a Kafka client, from an error of the client or its exception, or None.

    An error of another library, whose attributes may have any meaning, is never such an error.
    """
    confluent, aiokafka = sys.modules.get("confluent_kafka"), sys.modules.get("aiokafka.errors")
    kind = type(error)
    if confluent is not None and issubclass(kind, confluent.KafkaException) and error.args:
        error, kind = error.args[0], type(error.args[0])
    if confluent is not None and issubclass(kind, confluent.KafkaError):
        return error if error.fatal() or error.code() in _ENDED else None
    if aiokafka is not None and issubclass(kind, aiokafka.KafkaError):
        is_ended = issubclass(kind, aiokafka.ProducerFenced) or code_of(error) in _ENDED
        return error if is_ended else None
    return None


def size_limits(size: int) -> str:
    """Return a text that says why a record with this number of bytes cannot be sent, and what to do."""
    return (
        f"it has {size:,} bytes, and the limits are message.max.bytes of the producer, by default 1,000,000, "
        "or max_request_size of aiokafka, and max.message.bytes of the topic: increase both limits"
    )


class Producer(Protocol):
    """The methods of ``confluent_kafka.Producer`` that `EventProducer` calls."""

    @property
    def produce(self) -> Callable[..., Any]: ...
    def poll(self, timeout: float = ...) -> int: ...
    def flush(self, timeout: float = ...) -> int: ...


class Consumer(Protocol):
    """The methods of ``confluent_kafka.Consumer`` that `EventConsumer` calls."""

    def poll(self, timeout: float = ...) -> Any: ...
    def consume(self, num_messages: int = ..., timeout: float = ...) -> list[Any]: ...
    def close(self) -> Any: ...


class AnyProducer(Protocol):
    """A producer client of confluent-kafka or aiokafka; the settings of a client are not accepted."""

    @property
    def flush(self) -> Callable[..., Any]: ...


if TYPE_CHECKING:
    import confluent_kafka
    from typing_extensions import TypeVar as TypeVarWithDefault

    ProducerT = TypeVarWithDefault("ProducerT", bound=Producer, default=confluent_kafka.Producer)
    AnyProducerT = TypeVarWithDefault("AnyProducerT", bound=AnyProducer, default=confluent_kafka.Producer)
    ConsumerT = TypeVarWithDefault("ConsumerT", bound=Consumer, default=confluent_kafka.Consumer)
    AnyConsumerT = TypeVarWithDefault("AnyConsumerT", default=confluent_kafka.Consumer)
else:
    ProducerT, AnyProducerT = TypeVar("ProducerT"), TypeVar("AnyProducerT")
    ConsumerT, AnyConsumerT = TypeVar("ConsumerT"), TypeVar("AnyConsumerT")


class ClientError(Protocol):
    """The methods of ``confluent_kafka.KafkaError`` that show the kind of the error."""

    def code(self) -> int | None: ...
    def fatal(self) -> bool: ...
    def retriable(self) -> bool: ...


class PolledMessage(Protocol):
    """The methods of ``confluent_kafka.Message``; a message is a record, or an error in place of a record."""

    def error(self) -> ClientError | None: ...
    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Headers | None: ...
    def timestamp(self) -> tuple[int, int]: ...


@contextmanager
def suppress_client_errors() -> Iterator[None]:
    """Suppress a ``KafkaException`` that is raised in the block. Yields once."""
    from confluent_kafka import KafkaException

    with suppress(KafkaException):
        yield


def member_id(client: object) -> object:
    """Return the client's member id in its group; before the client has joined, the id is None or empty.

    A client that uses ``assign`` joins no group.
    """
    method = getattr(client, "memberid", None)
    return None if method is None else method()


def group_of(settings: Mapping[str, Any] | None, client: object) -> str | None:
    """Return the group id of a client that is not used yet, or None if the client does not show it."""
    if settings is not None:
        return str(settings.get("group.id", ""))
    found = getattr(client, "_group_id", None)  # aiokafka has no public name for it
    if metadata := _group_metadata(client):
        found = metadata[0].decode("utf-8", "replace")
    return found if isinstance(found, str) else None


def is_static(client: object) -> bool:
    """Return whether a librdkafka client has a ``group.instance.id``, or False if this is not known."""
    fields = _group_metadata(client)
    return len(fields) == 3 and fields[2].startswith(b"\0")


def _group_metadata(client: Any) -> list[bytes]:
    """Return the group id, member id and remaining bytes in a client's group metadata, or [] if unknown.

    The first of the remaining bytes is 0 if the client has a ``group.instance.id``, and otherwise 1.
    """
    with suppress(Exception):  # a client of a user's class may raise any error
        metadata = client.consumer_group_metadata()
        if isinstance(metadata, bytes) and metadata.startswith(_METADATA):
            return metadata[len(_METADATA) + 4 :].split(b"\0", 2)
    return []


def expels_after(settings: Mapping[str, Any] | None, client: object) -> tuple[str, float] | None:
    """Return how long a group waits for a client during a rebalance, before the group expels the client.

    The result consists of the name of the setting that limits this time, and the value of this setting in
    seconds.

    The result is None for a confluent-kafka client that the user passed, because such a client does not show
    the setting.
    """
    if settings is not None:
        return "max.poll.interval.ms", float(settings.get("max.poll.interval.ms", 300_000)) / 1000
    # aiokafka has no public names for these. The first is by default session_timeout_ms.
    names = "rebalance_timeout_ms", "max_poll_interval_ms"
    found = {name: getattr(client, f"_{name}", None) for name in names}
    known = {name: float(value) / 1000 for name, value in found.items() if isinstance(value, int | float)}
    return min(known.items(), key=itemgetter(1), default=None)


_METADATA = b"CGMDv2:"  # librdkafka's text of a group: a generation of 4 bytes, the id, the member, the rest


def stores_offsets(client: Any) -> bool:
    """Return whether a client stores the offsets of returned records, and may commit them automatically.

    If a client stores offsets, librdkafka refuses ``store_offsets`` with _INVALID_ARG. If a client does not
    store offsets, librdkafka instead reports that the partition does not exist. If ``enable.auto.commit`` is
    False, a client may also store offsets, for a ``commit`` without arguments.
    """
    from confluent_kafka import KafkaException, TopicPartition

    if not hasattr(client, "store_offsets"):  # a user's class
        return True
    try:
        client.store_offsets(offsets=[TopicPartition("", 0, 0)])  # no partition has this name
    except KafkaException as error:
        return bool(error.args[0].code() == _INVALID_ARG)
    return False


_INVALID_ARG: Final = -186
_ASYNCIO = ("send", "getone", "start")  # coroutine functions; each client of aiokafka has one of these
_ADDRESSES: Final = re.compile(r"[\w.-]+:\d+(,[\w.-]+:\d+)*")
_CONVERTING = ("SerializingProducer", "DeserializingConsumer")  # of confluent-kafka


def check_client(client: object, protocol: type) -> None:
    """Raise `TypeError` unless a client has the methods of the protocol `Producer` or `Consumer`."""
    name = protocol.__name__
    needed = [method for method in vars(protocol) if not method.startswith("_")]
    problem = _problem(client, name, needed)
    if problem is not None:
        methods = f"{', '.join(needed[:-1])} and {needed[-1]}"
        advice = ""
        if not any(hasattr(client, method) for method in needed):
            address = client if isinstance(client, str) and _ADDRESSES.fullmatch(client) else "localhost:9092"
            advice = f"; pass settings, such as {{'bootstrap.servers': {address!r}}}"
        raise TypeError(
            f"{name.lower()} must be a confluent_kafka.{name}, or have its {methods}, got {problem}{advice}"
        )


def is_awaited(client: object, protocol: type, *methods: str) -> bool:
    """Return whether ``methods`` of a client are coroutine functions, as they are in aiokafka.

    Raises `TypeError` if ``methods`` are not coroutine functions and the client does not have the methods of
    ``protocol``.
    """
    kind = type(client)
    if all(inspect.iscoroutinefunction(getattr(kind, method, None)) for method in methods):
        return True
    if any(inspect.iscoroutinefunction(getattr(kind, method, None)) for method in ("produce", "consume")):
        name, reason = protocol.__name__, "this library does not use"
        if protocol is Producer:
            reason = "does not accept headers"
        raise TypeError(
            f"{name.lower()} must be a plain confluent_kafka.{name} or a client of aiokafka, "
            f"got {kind.__name__}, which {reason}; pass confluent_kafka.{name}"
        )
    if _is_asyncio(kind) and not _is_ours(kind):
        name, missing = protocol.__name__, [method for method in methods if not hasattr(kind, method)]
        raise TypeError(
            f"{name.lower()} must be a confluent_kafka.{name} or aiokafka's, got {kind.__name__}, which has "
            f"no {' and no '.join(missing) or 'coroutine ' + methods[0]}; pass a {name}"
        )
    check_client(client, protocol)
    return False


def check_handler(handler: object, *, awaited: bool = False) -> None:
    """Raise `TypeError` unless a handler is a normal function or, with ``awaited``, a coroutine function."""
    is_coroutine = is_coroutine_function(handler)
    got = type(handler).__name__
    if awaited and not is_coroutine:
        raise TypeError(f"handler must be a coroutine function, got {got}")
    if is_coroutine and not awaited:
        got = "a coroutine function; use AsyncEventConsumer"
    if not callable(handler) or is_coroutine is not awaited:
        raise TypeError(f"handler must be a function of a record, got {got}")


def check_topics(topics: Sequence[str]) -> None:
    """Raise `TypeError` if ``topics`` is not a list of names, and `ValueError` if ``topics`` is empty."""
    is_list = isinstance(topics, Collection) and not isinstance(topics, str | bytes)
    if not is_list or not all(isinstance(topic, str) and topic for topic in topics):
        advice = [topics] if isinstance(topics, str) and topics else ["orders"]
        raise TypeError(f"topics must be a list of names, got {topics!r}; pass {advice}")
    if not topics:
        raise ValueError(f"topics must be one or more names, got {topics!r}; pass ['orders']")


def check_seconds(name: str, seconds: object) -> None:
    """Raise `TypeError` or `ValueError` unless a value is None, or a number of seconds that is at least 0."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        got = with_article(type(seconds).__name__)
        raise TypeError(f"{name} must be a number of seconds, or None, got {got}; pass {name}=5.0")
    if not seconds >= 0:
        raise ValueError(f"{name} must be 0 or more seconds, or None, got {seconds!r}; pass {name}=5.0")


def check_max_records(number: object) -> None:
    """Raise `TypeError` or `ValueError` unless a number lies between 1 and the limit of ``consume``."""
    if isinstance(number, bool) or not isinstance(number, int):
        got = with_article(type(number).__name__)
        raise TypeError(f"max_records must be an int, got {got}; pass max_records=100")
    if not 1 <= number <= _MOST_RECORDS:
        raise ValueError(
            f"max_records must be from 1 to {_MOST_RECORDS:,}, got {number}; pass max_records=100"
        )


def add_observers(before: Observers | None, observers: Sequence[Observer]) -> Observers | None:
    """Return the observers of a client and further observers together, or None if there are none.

    Raises `TypeError` if ``observers`` is not a sequence, or contains an object that is not an observer.
    """
    if not isinstance(observers, Sequence):
        raise TypeError(f"observers must be a list of observers, got {observers!r}; pass [observer]")
    if not observers:
        return before
    from cloudevents_kafka.clients.observing.calls import Observers  # not imported without an observer

    return Observers(*(() if before is None else before.all), *observers)


def check_producer(producer: object, kind: str) -> None:
    """Raise `TypeError` unless the producer of a run is None or an instance of the class named ``kind``."""
    names = [each.__name__ for each in type(producer).__mro__]
    if producer is not None and kind not in names:
        raise TypeError(
            f"producer must be an {kind}, got {names[0]}; pass the producer with which the handler sends"
        )


def _is_asyncio(kind: type) -> bool:
    return any(inspect.iscoroutinefunction(getattr(kind, method, None)) for method in _ASYNCIO)


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("cloudevents_kafka.clients")


def _problem(client: object, name: str, needed: list[str]) -> str | None:
    if isinstance(client, type):
        return f"the class {client.__name__}; create an instance of it first"
    got = type(client).__name__
    for base in type(client).__mro__:
        if base.__name__ in _CONVERTING and base.__module__.startswith("confluent_kafka"):
            return f"{got}, which converts keys and values; pass a plain {name}"
    methods = {method: getattr(client, method, None) for method in needed}
    is_ours = _is_ours(type(client))
    if not is_ours and (_is_asyncio(type(client)) or any(map(inspect.iscoroutinefunction, methods.values()))):
        return (
            f"{got}, an asyncio client; use AsyncEvent{name}, which takes aiokafka's client or a plain {name}"
        )
    missing = [method for method in needed if not callable(methods[method])]
    advice = "; pass the client that it wraps, or settings" if is_ours else ""
    return f"{got}, which has no {' and no '.join(missing)}{advice}" if missing else None


class OnlyLoop:
    """The run or processor that reads from a consumer now; ``name`` is None if nothing reads.

    Only one run or processor may read from a consumer at a time. If two of them read, the first would not
    know the records that the second has read, and would commit offsets after these records.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.thread = 0
        """The id of the loop's thread; only this thread may read."""
        self._lock = threading.Lock()

    @contextmanager
    def begin(self, name: str) -> Iterator[None]:
        """Until the block ends, refuse all other loops; raise `RuntimeError` if a loop runs already.

        Yields once.
        """
        with self._lock:
            if self.name is not None:
                self._refuse(name)
            self.name, self.thread = name, threading.get_ident()
        try:
            yield
        finally:
            self.name = None

    def check(self, name: str) -> None:
        """Raise `RuntimeError` if a loop runs in another thread than the current thread."""
        if self.name is not None and threading.get_ident() != self.thread:
            self._refuse(name)

    def _refuse(self, name: str) -> None:
        raise RuntimeError(
            f"a consumer must have one loop at a time, got {name} while its {self.name} is running; "
            "make a consumer for each loop, or wait for the end of the first"
        )
