"""Framed payloads: payloads with a frame that contains the name of the writer's schema.

Serializers of a schema registry write framed payloads. A framed payload is read with the schema that the
frame names, and converted to the reader's schema. If a framed payload cannot be read or converted, the
payload does not fit, and the reason contains the name of the schema. The name of a schema is its id in the
registry, or its GUID in hexadecimal digits. The name of the schema is in front of the data, or in the header
`HEADER` of the record. In a registry, the schema with a certain name never changes, but schemas with new
names may be added at any time. So the registry's schemas for one batch (`Writers`) are fetched only once, and
are stored in the folder ``OUT/_batches``. If the batch is read again, the stored schemas are used. Python
reads all framed payloads, and writes them again with the reader's schema, so that Spark can read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from cloudevents_kafka.codecs.avro_names import with_one_name
from cloudevents_kafka.codecs.avro_writers import writer_schema
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.spark.typed.avro_resolution import Resolution
from cloudevents_kafka.spark.typed.checks import Checked, Misfit
from cloudevents_kafka.spark.typed.schemas import DataSchema

HEADER: Final = "__value_schema_id"
_LENGTHS: Final = {0: 5, 1: 17}  # the length of a frame, by its first byte


class Writer(msgspec.Struct, frozen=True, dict=True):
    """A registry's schema with which a payload was written.

    ``kind`` is AVRO, JSON or PROTOBUF, or empty if the registry has no such schema. For Avro, the last item
    of ``texts`` is the schema, and the items before it are the schemas to which this schema refers.
    """

    kind: str = ""
    texts: tuple[str, ...] = ()

    def read(self, datum: bytes | None, reader: DataSchema) -> Checked:
        """Return an Avro datum in the reader's schema, or the reason why the datum does not fit it."""
        if datum is None or reader.refused:
            return reader.check(datum)
        resolution = self._resolution(reader)
        if isinstance(resolution, Checked):
            return resolution
        try:
            resolved = resolution.read(datum)
        except Misfit as misfit:
            return Checked(None, misfit.reason())
        return reader.avro_checks.check(resolved, len(datum))

    def _resolution(self, reader: DataSchema) -> Resolution | Checked:
        """Return the resolution to a reader's schema, or the reason why the writer's schema is invalid.

        The resolution for each reader's schema is compiled only once.
        """
        if reader not in self._resolutions:
            try:
                writer, named = self._parsed
                self._resolutions[reader] = Resolution(writer, named, reader.parsed)
            except Exception as error:  # noqa: BLE001  # fastavro raises errors of any type
                deep = isinstance(error, RecursionError)
                got = "a schema that is nested too deep" if deep else f"a schema with {preview(str(error))}"
                rule = "must have a writer's schema that is valid Avro"
                self._resolutions[reader] = _misfit(rule, got)
        return self._resolutions[reader]

    @cached_property
    def _resolutions(self) -> dict[DataSchema, Resolution | Checked]:
        return {}

    @cached_property
    def _parsed(self) -> tuple[Any, dict[str, Any]]:
        """The parsed schema of the writer, and all named schemas."""
        import fastavro

        named: dict[str, Any] = {}
        schemas = with_one_name(writer_schema(msgspec.json.decode(text)) for text in self.texts)
        *_, parsed = (fastavro.parse_schema(schema, named) for schema in schemas)
        return parsed, named


Writers = Mapping[str, Writer]
"""The schemas for the names in one batch; if a batch has more names than the limit, some names are missing.
"""


def check_payload(
    schema: DataSchema,
    data: bytes | None,
    header: bytes | None,
    writers: Writers | None,
    content_type: str | None = None,
    *,
    rescue: bool,
) -> Checked:
    """Return a payload that Spark can read completely, or the reason why the payload does not fit.

    Without ``writers``, the payload is read as data without a frame. If ``writers`` is passed, a JSON payload
    without a frame is also accepted.
    """
    if writers is None:
        return schema.check(data, content_type, rescue=rescue)
    frame = data if header is None else header
    length = _LENGTHS.get(frame[0]) if frame else None
    if frame is None or length is None or len(frame) < length:
        if not schema.avro and header is None:
            return schema.check(data, content_type, rescue=rescue)
        return _misfit("must have the id of its schema in front of it, or in a header", "none")
    number, datum = frame[1:length], frame[length:] if header is None else data
    name = number.hex() if frame[0] else str(int.from_bytes(number, "big"))
    if name in writers and writers[name].kind == ("AVRO" if schema.avro else "JSON"):
        if schema.avro:
            return writers[name].read(datum, schema)
        return schema.check(datum, content_type, rescue=rescue)
    return _not_read(name, schema, writers.get(name))


def _not_read(name: str, schema: DataSchema, writer: Writer | None) -> Checked:
    if writer is None:
        return _misfit("must have one of the schemas that are fetched for its batch", f"another one, {name}")
    if not writer.kind:
        return _misfit("must have a schema that the registry knows", name)
    kind = "Avro" if schema.avro else "JSON Schema"
    return _misfit(f"must have a writer's schema of {kind}", f"{name}, which is of {writer.kind}")


def header_sql(columns: list[str]) -> str:
    """Return SQL for the value of the first header `HEADER` of a record, or for null without headers."""
    if "headers" not in columns:
        return "CAST(NULL AS BINARY)"
    return f"get(filter(`headers`, header -> header.key = '{HEADER}'), 0).value"


def name_sql(data: str, header: str) -> str:
    """Return SQL for the name of the schema in a payload's frame, or for null if the payload has no frame.

    `check_payload` finds the same name of the schema in Python.
    """
    frame = f"coalesce({header}, {data})"
    return (
        f"CASE WHEN length({frame}) >= 5 AND substring({frame}, 1, 1) = X'00' "
        f"THEN conv(hex(substring({frame}, 2, 4)), 16, 10) "
        f"WHEN length({frame}) >= 17 AND substring({frame}, 1, 1) = X'01' "
        f"THEN lower(hex(substring({frame}, 2, 16))) END"
    )


def check_reader(schema: DataSchema) -> None:
    """Raise `ValueError` if a reader's schema has a union of several types other than null.

    A value may match several types of such a union: for example, an int matches ``long`` and ``double``.
    """
    waiting: list[Any] = [msgspec.json.decode(schema.avro)] if schema.avro else []
    while waiting:
        part = waiting.pop()
        if isinstance(part, list) and len([one for one in part if one != "null"]) > 1:
            raise ValueError(
                "with a schema registry a schema must have unions of null and one type only, got "
                f"{preview(msgspec.json.encode(part).decode())}"
            )
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += [part[key] for key in ("type", "items", "values") if key in part]
            waiting += [field["type"] for field in part.get("fields", ())]


def _misfit(rule: str, got: str) -> Checked:
    return Checked(None, Misfit("", rule, got).reason())
