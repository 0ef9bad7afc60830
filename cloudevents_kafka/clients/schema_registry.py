"""Schema registry clients for settings whose values may be texts, and time limits for their answers.

Confluent's client waits forever if a registry accepts a connection but does not answer. A client that
`registry_client` has made has a time limit for each wait. `Patience` limits the time of one complete call of
any client, because a registry may send its answer byte by byte, or return a schema with many references.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Final, TypeVar
from uuid import UUID

T = TypeVar("T")

DEFAULTS: Final[Mapping[str, Any]] = {"timeout": 10.0, "max.retries": 1}
"""Default settings of schema registry clients: the seconds of one wait, and the number of retries."""
NEED: Final = 'pip install "confluent-kafka[avro,schemaregistry]"'
"""The command that installs confluent's schema registry client."""
MOST_ID: Final = 2**31 - 1
"""The largest id of a schema; for a larger number, a registry may answer as if its URL were wrong."""
_WAITS: Final = 6  # of a call: for the connection and the answer in each try, and between the tries
_MOST_SECONDS: Final = 86_400
# The least and the greatest value of each setting that is a number; only ``timeout`` may be a fraction.
_NUMBERS: Final[Mapping[str, tuple[float, float]]] = {
    "timeout": (0.001, _MOST_SECONDS),
    "cache.capacity": (1, 2**31),
    "cache.latest.ttl.sec": (0, 2**31),
    "max.retries": (0, 1000),
    "retries.wait.ms": (0, _MOST_SECONDS * 1000),
    "retries.max.wait.ms": (0, _MOST_SECONDS * 1000),
}
_NOT_FOUND: Final = 404
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_MAY_BE_BOOLEAN: Final = "ssl.ca.location"  # with False, the client trusts any certificate


def registry_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``settings`` with `DEFAULTS`; texts are converted where the client needs numbers or booleans.

    Raises `ValueError` if a setting must be a number, but its value is not a number, or is out of range. The
    message of the error names the setting.

    Examples:
        >>> from cloudevents_kafka.clients.schema_registry import registry_settings
        >>> registry_settings({"url": "http://localhost:8081", "timeout": "5"})
        {'timeout': 5.0, 'max.retries': 1, 'url': 'http://localhost:8081'}
    """
    read = {**DEFAULTS, **settings}
    for name in _NUMBERS.keys() & read.keys():
        read[name] = _number(name, read[name])
    ca = str(read.get(_MAY_BE_BOOLEAN)).lower()
    if ca in _BOOLEANS:
        read[_MAY_BE_BOOLEAN] = _BOOLEANS[ca]
    return read


def _number(name: str, value: Any) -> float | None:
    if value is None:  # this means, as in the client, that the setting is missing
        return DEFAULTS.get(name)
    least, most = _NUMBERS[name]
    number = float("nan")
    if not isinstance(value, bool):
        with suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    kind = "number" if name == "timeout" else "whole number"
    if not least <= number <= most or (name != "timeout" and number % 1):
        raise ValueError(f"schema.registry.{name} must be a {kind} from {least} to {most}, got {value!r}")
    return number if name == "timeout" else int(number)


def registry_client(settings: Mapping[str, Any]) -> Any:
    """Return confluent's schema registry client for settings; the values of the settings may be texts.

    Raises `ImportError` if the client is not installed, and `ValueError` for wrong settings.

    Examples:
        >>> from cloudevents_kafka.clients.schema_registry import registry_client
        >>> client = registry_client({"url": "http://localhost:8081", "timeout": "5", "max.retries": "0"})
        >>> type(client).__name__
        'SchemaRegistryClient'
    """
    from confluent_kafka.schema_registry import SchemaRegistryClient

    read = registry_settings(settings)
    try:
        return SchemaRegistryClient.new_client(read)
    except (OSError, TypeError) as error:  # the first for a certificate file, the second for a value
        raise ValueError(str(error)) from error


def close_client(client: Any) -> None:
    """Close the connections of a registry client.

    The clients of the oldest supported releases of confluent-kafka have no method ``close``. The end of a
    `with` block closes their connections.
    """
    if hasattr(client, "close"):
        client.close()
    else:
        client.__exit__(None, None, None)


def seconds_of(settings: Mapping[str, Any]) -> float:
    """Return the time limit, in seconds, of a complete call: six times the time limit of one wait."""
    return _WAITS * float(registry_settings(settings)["timeout"])


def is_unknown(error: Exception, *, by_guid: bool) -> bool:
    """Return whether a registry has answered that a schema does not exist.

    Servers other than schema registries also answer with 404, but their answers do not contain a registry's
    error code. If a GUID is unknown, even a registry answers without an error code.
    """
    status, code = (getattr(error, name, None) for name in ("http_status_code", "error_code"))
    return status == _NOT_FOUND and (by_guid or (type(code) is int and code // 100 == _NOT_FOUND))


class NotASchema(Exception):
    """The answer was not sent by a schema registry, but for example by a proxy."""


def find_schema(client: Any, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the type of a schema, such as AVRO, and the texts of its references and of the schema itself.

    ``name`` is the id of a schema, or its GUID of 32 digits, with or without hyphens. If the type of the
    schema is not AVRO, the result contains no texts. Raises the errors of the client, and `NotASchema` for an
    answer that does not contain a schema.
    """
    try:
        found = client.get_schema(int(name)) if _is_id(name) else client.get_schema_by_guid(str(UUID(name)))
        kind = found.schema_type or "AVRO"
        texts = (*_references(client, found, set()), found.schema_str) if kind == "AVRO" else ()
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # The client reads answers without checking their form.
        raise NotASchema(f"an answer that does not have a schema ({error})") from error
    if not all(isinstance(text, str) for text in (kind, *texts)):
        raise NotASchema("an answer that does not have a schema as a text")
    return kind, texts


def _is_id(name: str) -> bool:
    return name.isdigit() and len(name) < 32


def _references(client: Any, schema: Any, seen: set[str]) -> list[str]:
    texts = []
    for one in schema.references or ():
        if one.name not in seen:
            seen.add(one.name)
            # Even a deleted schema is read: other schemas still refer to it, and their data still exists.
            referred = client.get_version(one.subject, one.version, deleted=True).schema
            texts += [*_references(client, referred, seen), referred.schema_str]
    return texts


class NotAsked(Exception):
    """`Patience.end` was called before the registry had answered."""


class Patience:
    """Waits for calls of a schema registry client, for a limited time.

    Examples:
        >>> from cloudevents_kafka.clients.schema_registry import Patience
        >>> Patience(60.0).wait_for(lambda: 1 + 1)
        2
    """

    def __init__(self, seconds: float = _WAITS * DEFAULTS["timeout"]) -> None:
        """Limit the wait for each call to ``seconds``."""
        self._seconds = seconds
        self._call: Future[Any] | None = None
        self._has_ended = False

    def wait_for(self, call: Callable[[], T]) -> T:
        """Call a function and return its result; raise the function's error, `TimeoutError` or `NotAsked`.

        The function is called in a daemon thread. A registry may block this thread forever, but no code waits
        until the thread has ended.
        """
        future: Future[T] = Future()
        self._call = future
        if self._has_ended:
            self.end()
        else:
            threading.Thread(target=_make, args=(call, future), name="schema-registry", daemon=True).start()
        try:
            return future.result(self._seconds)
        except TimeoutError:
            if future.done():  # the client has raised it
                raise
            raise TimeoutError(f"no complete answer within {self._seconds:g} s") from None
        finally:
            self._call = None

    def end(self) -> None:
        """Let the current call and all later calls raise `NotAsked`; any thread may call this method."""
        self._has_ended = True
        call = self._call
        if call is not None:
            with suppress(InvalidStateError):
                call.set_exception(NotAsked("the run ends"))


def _make(call: Callable[[], T], future: Future[T]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
        with suppress(InvalidStateError):
            future.set_exception(error)
    else:
        with suppress(InvalidStateError):
            future.set_result(result)
