"""`make_client`: creates a confluent-kafka client from settings; the errors say what to correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, Literal

from cloudevents_kafka.primitives.redaction import mask_name, mask_settings

_SERVERS: Final = ("bootstrap.servers", "metadata.broker.list", "test.mock.num.brokers")
_ONLY_ERRORS: Final = "delivery.report.only.error"
# A client drops the fetched records of a partition that it pauses: by default up to 100,000 records.
_READ_AHEAD: Final = {"queued.min.messages": 1000}
# The client would never call these: `EventProducer` passes a callback with each message.
_OF_DELIVERIES: Final = {"on_delivery", "dr_cb", "dr_msg_cb"}
# The client calls these within a poll, and raises their errors; it handles errors of oauth_cb by itself.
_CALLBACKS: Final = ("error_cb", "stats_cb", "throttle_cb", "on_commit")


def make_client(
    settings: Mapping[str, Any],
    kind: Literal["Producer", "Consumer"],
    changed: Callable[[Any], Any] | None = None,
    **defaults: Any,
) -> Any:
    """Return a new ``confluent_kafka.Producer`` or ``Consumer``.

    The names in ``settings`` are the names of librdkafka; ``settings`` take precedence over ``defaults``.
    ``changed`` is None, or a function that maps the class of the client to the class that is created. Raises
    `ValueError` for settings that the client does not accept; the message does not contain the secrets of
    these settings. Raises `ImportError` if confluent-kafka is not installed.
    """
    of = f"settings of a {kind} must"
    if not any(settings.get(name) for name in _SERVERS):
        got = ", ".join(sorted(mask_name(str(name)) for name in settings)) or "none"
        advice = "add the address of a broker: {'bootstrap.servers': 'localhost:9092', …}"
        raise ValueError(f"{of} have bootstrap.servers, got {got}; {advice}")
    if kind == "Producer" and (found := sorted(_OF_DELIVERIES.intersection(settings))):
        raise ValueError(f"{of} not have callbacks of deliveries, got {found[0]}; pass on_delivery to send")
    if kind == "Producer" and is_on(settings.get(_ONLY_ERRORS, False)):
        raise ValueError(
            f"{of} have no {_ONLY_ERRORS}, got {settings[_ONLY_ERRORS]!r}: a successful delivery would "
            "have no report; leave out this setting"
        )
    try:
        import confluent_kafka
    except ImportError as error:
        advice = "pip install confluent-kafka, or pass a client"
        raise ImportError(f"confluent-kafka must be installed for settings, got {error}; {advice}") from error
    made = getattr(confluent_kafka, kind)
    try:
        return (made if changed is None else changed(made))({**defaults, **settings})
    except (confluent_kafka.KafkaException, TypeError, ValueError) as error:
        reason = error.args[0].str() if isinstance(error, confluent_kafka.KafkaException) else str(error)
    # Without `from error`: its traceback contains the settings. Names of callbacks are not secrets.
    texts = {str(name): str(value) for name, value in settings.items() if not str(name).endswith("_cb")}
    reason = mask_settings(reason.strip(), texts)
    raise ValueError(f"{of} be names and values of librdkafka, got: {reason}; correct that setting")


@contextmanager
def closed_on_error(client: Any) -> Iterator[None]:
    """Close the client if the block raises an error. Yields once.

    ``client`` is a client that was made from settings, or None. A client that is not closed connects to its
    brokers until the garbage collector finds the client.
    """
    try:
        yield
    except BaseException:
        close = getattr(client, "close", None)  # the Producer of older releases has no close
        if close is not None:
            close()
        raise


@cache
def _noting(made: Any) -> Any:
    """Return a subclass of a client's class; ``has_begun`` is True after a subscription or an assignment.

    A confluent-kafka client does not show whether it has a subscription or an assignment. Without a
    subscription or an assignment, the client never returns a record.
    """
    if not isinstance(made, type):  # a function that makes clients
        return made

    def noting(name: str) -> Callable[..., None]:
        def begin(self: Any, *arguments: Any, **options: Any) -> None:
            getattr(made, name)(self, *arguments, **options)
            self.has_begun = True

        return begin

    members = {name: noting(name) for name in ("subscribe", "assign", "incremental_assign")}
    own = {"__module__": made.__module__, "__doc__": made.__doc__, "has_begun": False}
    return type(made.__name__, (made,), {**own, **members})


def check_begun(client: Any) -> None:
    """Raise `RuntimeError` if a client made from settings has neither topics nor assigned partitions."""
    if not getattr(client, "has_begun", True):
        advice = "pass topics=['orders'], or call subscribe()"
        raise RuntimeError(f"a consumer must be subscribed before it reads, got no topics; {advice}")


def is_on(value: object) -> bool:
    """Return whether the value of a boolean librdkafka setting means true."""
    return str(value).lower() not in ("false", "f", "0")


def make_consumer(
    settings: Mapping[str, Any], keeping: Callable[[Callable[..., object]], Callable[..., object]]
) -> Any:
    """Return a new ``confluent_kafka.Consumer`` that never commits by itself.

    For the arguments, see `make_client`. ``keeping`` is a function that wraps a callback from the settings,
    so that the callback never raises an error: see `Raised`.
    """
    if is_on(settings.get("enable.auto.commit", False)):
        raise ValueError(
            f"enable.auto.commit must be False in the settings, got {settings['enable.auto.commit']!r}: the "
            "client would commit unfinished records; commit by run() or commit(), or pass your own client"
        )
    callbacks = {name: keeping(settings[name]) for name in _CALLBACKS if callable(settings.get(name))}
    defaults = {**_READ_AHEAD, "enable.auto.commit": False}
    return make_client({**settings, **callbacks}, "Consumer", _noting, **defaults)
