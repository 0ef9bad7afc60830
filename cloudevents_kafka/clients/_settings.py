"""`make_client`: a client of confluent-kafka from settings, with errors that say what to correct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, overload

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

_SERVERS: Final = ("bootstrap.servers", "metadata.broker.list", "test.mock.num.brokers")
# Callbacks that no message would call, as `EventProducer` passes one with each.
_OF_DELIVERIES: Final = frozenset(("on_delivery", "dr_cb", "dr_msg_cb"))


@overload
def make_client(settings: Mapping[str, Any], kind: Literal["Producer"], **defaults: Any) -> Producer: ...
@overload
def make_client(settings: Mapping[str, Any], kind: Literal["Consumer"], **defaults: Any) -> Consumer: ...
def make_client(settings: Mapping[str, Any], kind: Literal["Producer", "Consumer"], **defaults: Any) -> Any:
    """Return a new ``confluent_kafka.Producer`` or ``Consumer``.

    ``settings`` have the names of librdkafka, and precede ``defaults``. Raises `ValueError` for settings that
    the client does not accept, without their secrets, and `ImportError` if confluent-kafka is not installed.
    """
    if not any(settings.get(name) for name in _SERVERS):
        got = ", ".join(sorted(map(_name, settings))) or "none"
        raise ValueError(
            f"settings of a {kind} must have bootstrap.servers, got {got}; "
            "add the address of a broker: {'bootstrap.servers': 'localhost:9092', …}"
        )
    if kind == "Producer" and (found := _OF_DELIVERIES.intersection(settings)):
        raise ValueError(
            f"settings of a Producer must not have callbacks of deliveries, got {', '.join(sorted(found))}; "
            "pass on_delivery to send"
        )
    try:
        import confluent_kafka
    except ImportError as error:
        raise ImportError(
            f"confluent-kafka must be installed to make a {kind} from settings, got: {error}; "
            "pip install confluent-kafka, or pass a client"
        ) from error
    try:
        return getattr(confluent_kafka, kind)({**defaults, **settings})
    except (confluent_kafka.KafkaException, TypeError, ValueError) as error:
        reason = error.args[0].str() if isinstance(error, confluent_kafka.KafkaException) else str(error)
        raise ValueError(
            f"settings of a {kind} must be names and values of librdkafka, got: {_masked(reason, settings)}; "
            "correct that setting"
        ) from None  # its traceback has the settings


def _masked(reason: str, settings: Mapping[str, Any]) -> str:
    from cloudevents_kafka.primitives.redaction import mask_settings

    texts = {str(name): str(value) for name, value in settings.items()}
    return mask_settings(reason.strip(), {name: text for name, text in texts.items() if name[-3:] != "_cb"})


def _name(name: object) -> str:
    from cloudevents_kafka.primitives.redaction import mask_name

    return mask_name(str(name))
