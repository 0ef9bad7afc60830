"""Decode data that a schema registry's serializers wrote, and return the data as JSON."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from cloudevents_kafka.binding import Decoded
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.clients.schema_registry import (
    MOST_ID,
    NEED,
    Patience,
    close_client,
    find_schema,
    is_unknown,
    registry_client,
    seconds_of,
)
from cloudevents_kafka.codecs import avro
from cloudevents_kafka.codecs.avro_writers import writer_schema
from cloudevents_kafka.codecs.json import is_json
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.primitives.bounded import remember
from cloudevents_kafka.primitives.redaction import mask_text, mask_url

_HEADER: Final = "__value_schema_id"
_LENGTHS: Final = {b"\0": 5, b"\1": 17}
"""The length of a prefix with the id or the GUID of a schema, by the first byte of the prefix."""
_NAMES: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_MOST: Final = 200  # characters of a reason
_Read = Callable[[bytes], Any]


class RegistryData:
    """Decodes data with the schemas of a registry; each schema is fetched once."""

    def __init__(self, url: str, settings: Mapping[str, str], interrupts: Interrupts) -> None:
        """Raise `BadUsage` if the registry's client refuses the settings, or is not installed.

        A signal that arrives while a schema is fetched raises `Interrupted`.
        """
        try:
            self._client = registry_client({**settings, "url": url})
        except ImportError:
            raise BadUsage(f"--schema-registry needs the client of a registry: {NEED}") from None
        except ValueError as error:
            raise BadUsage(f"--schema-registry: {mask_text(str(error))}") from None
        self._url, self._interrupts = mask_url(url), interrupts
        self._patience = Patience(seconds_of(settings))
        self._readers: dict[str, _Read] = {}

    def __call__(self, item: Decoded) -> dict[str, Any]:
        """Return data as JSON in a member ``decoded``, or the error in a member ``decode_error``.

        For data without a schema id, return {}.
        """
        payload = item.event.payload or b""
        header = next((value for name, value in item.record.headers if name == _HEADER and value), None)
        if header is None and len(payload) < _LENGTHS.get(payload[:1], sys.maxsize):
            return {}
        from confluent_kafka.schema_registry.serde import SchemaId

        name, stream = SchemaId(""), io.BytesIO(payload)
        try:
            if header is None:
                name.from_bytes(stream)
            else:
                name.from_bytes(io.BytesIO(header))
            value = self._reader(str(name.id if name.guid is None else name.guid))(stream.read())
            return {"decoded": msgspec.Raw(msgspec.json.encode(_with_names(value), enc_hook=str))}
        except BrokerFailure:
            raise
        except Exception as error:  # noqa: BLE001  # fastavro raises errors of any type
            return {"decode_error": (str(error) or type(error).__name__)[:_MOST]}

    def close(self) -> None:
        """Close the connections to the registry."""
        close_client(self._client)

    def _reader(self, name: str) -> _Read:
        """Return the function that reads data with the schema that an id or a GUID identifies."""
        return self._readers.get(name) or remember(self._readers, name, self._fetch(name))

    def _fetch(self, name: str) -> _Read:
        client = self._client
        if name.isdigit() and int(name) > MOST_ID:
            return _refuse(f"the registry has no schema {name}")
        try:
            with self._interrupts.waiting():
                kind, texts = self._patience.wait_for(lambda: find_schema(client, name))
        except Exception as error:  # noqa: BLE001  # of the client, or of the network
            if is_unknown(error, by_guid=not name.isdigit()):
                return _refuse(f"the registry has no schema {name}")
            reason = mask_text(str(error) or type(error).__name__)[:_MOST]
            raise BrokerFailure(
                f"registry {self._url} does not answer: {reason}; check --schema-registry"
            ) from None
        if kind == "JSON":
            return _read_json
        if kind != "AVRO":
            return _refuse(f"schema {name} is of {kind}")
        *references, schema = (writer_schema(msgspec.json.decode(text)) for text in texts)
        decode = avro(schema, references=references).decode
        return decode if decode is not None else _read_json


def _with_names(value: Any) -> Any:
    """Return data in which NaN and infinities, which are not JSON, are replaced by their names in Avro."""
    if isinstance(value, float):
        return _NAMES.get(str(value), value)
    if isinstance(value, dict):
        return {name: _with_names(each) for name, each in value.items()}
    return [_with_names(each) for each in value] if isinstance(value, list | tuple) else value


def _read_json(payload: bytes) -> Any:
    if not is_json(payload):
        raise DataError("the data after the id of its schema is not JSON")
    return msgspec.Raw(payload)


def _refuse(reason: str) -> _Read:
    def read(_: bytes) -> Any:
        raise DataError(reason)

    return read
