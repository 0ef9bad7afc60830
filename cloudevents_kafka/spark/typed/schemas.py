"""`DataSchema` is the schema of a payload, of any kind that `data_as` and a pipeline accept.

A `DataSchema` contains the shape (the expected type) for the Java function, SQL for Spark, and the check in
Python. A pipeline stores its schemas in the folder ``OUT/_batches``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from cloudevents_kafka.codecs.avro_writers import reader_schema
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.spark._names import quote_name
from cloudevents_kafka.spark._patterns import literal, patterns_in
from cloudevents_kafka.spark.table_formats import table_package
from cloudevents_kafka.spark.typed.avro_checks import AvroChecks
from cloudevents_kafka.spark.typed.checks import Checked, Misfit, check_json
from cloudevents_kafka.spark.typed.json_schema import shape_of
from cloudevents_kafka.spark.typed.shape import (
    BY_NAME,
    RESCUED,
    RESERVED,
    Member,
    Shape,
    check_names,
    pointer,
    struct,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

_AVRO_TYPES: Final = ("record", "error")
_MOST_PARTS: Final = 10_000
_SUFFIXES: Final = (".avsc", ".json", ".ddl", ".sql")
_PROTOBUF: Final = (".desc", ".pb", ".proto", ".protoset")
# Without datetimeRebaseMode, dates before 1582 are null. With PERMISSIVE, a wrong payload does not end the
# job: the value becomes null, and Python checks the payload.
_AVRO_OPTIONS: Final = "map('mode', 'PERMISSIVE', 'datetimeRebaseMode', 'CORRECTED')"
_CORRUPT: Final = "__ce_corrupt"
"""The field for a text that Spark's parser has not read completely."""
_MOST: Final = 2**31 - 1
_JSON_OPTIONS: Final = (
    f"map('mode', 'PERMISSIVE', 'maxStringLen', '{_MOST}', 'maxNumLen', '{_MOST}', "
    f"'columnNameOfCorruptRecord', '{_CORRUPT}')"
)
_POLICY: Final = "spark.sql.legacy.timeParserPolicy"
_TIMES: Final = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
# An Avro schema is wrapped in a record with one field. The bytes of such a record are the bytes of its field.
# If Spark cannot read a payload, it sets the field to null; otherwise the field is never null.
_DATUM: Final = "cloudevents_kafka_datum"


class DataSchema(msgspec.Struct, frozen=True, dict=True):
    """A schema: a `Shape` for JSON, or the text of an Avro schema; `data_schema` creates schemas."""

    kind: Literal["json", "avro"]
    shape: Shape | None = None
    avro: str = ""
    refused: tuple[str, str] | None = None
    """Two texts if Spark cannot read any Avro data with the types of the table; otherwise None.

    The first text is the reason, and the second text is the table's types as DDL.
    """

    def fit(self, types: Mapping[tuple[str, ...], DataType], column: DataType) -> DataSchema:
        """Return a schema that accepts only data with the types of a table's columns.

        ``types`` maps paths of fields to their types in the table. ``column`` is the type of the whole column
        of values in the table.
        """
        if self.shape is not None:
            shape = self.shape
            for path, type_ in types.items():
                shape = _with_type(shape, path, type_, "")
            return msgspec.structs.replace(self, shape=shape)
        places = [f"{type_.simpleString()} at /{'/'.join(path)}" for path, type_ in types.items()]
        rule = f"must be of a schema with the types of its table, {', '.join(places)}"
        reason = Misfit("", rule, "a schema with other types").reason()
        ddl = _shape_of_type(column, "", nullable=True).ddl()
        return msgspec.structs.replace(self, refused=(reason, ddl))

    def type_in(self, spark: SparkSession, *, rescue: bool = False) -> DataType:
        """Return Spark's type for values of this schema."""
        return (
            spark.range(0)
            .selectExpr(f"{self.parsed_sql('CAST(NULL AS BINARY)', rescue=rescue)} AS raw")
            .selectExpr(self.whole_sql("raw", rescue=rescue))
            .schema[0]
            .dataType
        )

    def words(self, *, rescue: bool = False) -> str:
        """Return the text that describes this schema to the Java function.

        If ``rescue`` is true, the Java function does not accept payloads with members that the schema does
        not have.
        """
        if self.shape is None:
            return f"avro\n{self.avro}"
        return "\n".join(["json", *self.shape.words(closed=rescue)])

    def parsed_sql(self, payload: str, *, rescue: bool = False) -> str:
        """Return SQL for the result of Spark's parser for a payload; `whole_sql` extracts the value."""
        if self.refused:
            return f"CAST(NULL AS {self.refused[1]})"
        if self.shape is None:
            field = f'{{"name":"value","type":{self.avro}}}'
            outer = f'{{"type":"record","name":"{_DATUM}","fields":[{field}]}}'
            return f"from_avro({payload}, {literal(outer)}, {_AVRO_OPTIONS})"
        ddl = literal(self.shape.ddl(rescue=rescue, more=(_CORRUPT,)))
        return f"from_json(CAST({payload} AS STRING), {ddl}, {_JSON_OPTIONS})"

    def whole_sql(self, parsed: str, *, rescue: bool = False) -> str:
        """Return SQL for the value in a column with results of `parsed_sql`.

        The value is null if the parser has not read the payload completely.
        """
        if self.refused:
            return parsed
        if self.shape is None:
            return f"{parsed}.value"
        names = [quote_name(member.name) for member in self.shape.members] + [RESCUED] * rescue
        fields = ", ".join(f"{parsed}.{name} AS {name}" for name in names)
        return f"CASE WHEN {parsed} IS NOT NULL AND {parsed}.{_CORRUPT} IS NULL THEN struct({fields}) END"

    def check(
        self, payload: bytes | None, content_type: str | None = None, *, rescue: bool = False
    ) -> Checked:
        """Return a payload that Spark can read completely, or the reason why the payload does not fit.

        A JSON payload is encoded in the charset of its content type.
        """
        if self.refused:
            return Checked(None, self.refused[0])
        if self.shape is None:
            return self.avro_checks.check(payload)
        return check_json(payload, self.shape, content_type, rescue=rescue)

    @cached_property
    def parsed(self) -> Any:
        """The Avro schema in the form that fastavro returns."""
        import fastavro

        # The notes of earlier versions may contain invalid logical types.
        return fastavro.parse_schema(reader_schema(msgspec.json.decode(self.avro)))

    @cached_property
    def avro_checks(self) -> AvroChecks:
        """The checks for data with the Avro schema."""
        return AvroChecks(self.parsed)


def data_schema(source: Any) -> DataSchema:
    """Return the schema that a source describes.

    A source is a text in DDL, JSON Schema or Avro, or the path of a file with such a text. A source can also
    be a dict with JSON Schema or Avro, a `StructType`, a dataclass, a msgspec Struct or a pydantic model. To
    read DDL, Spark needs a session. Raises `ValueError` if a part of the schema has no type in Spark; the
    error names this part.
    """
    if isinstance(source, DataSchema):
        return source
    schema = _read_schema(source)
    names = [member.name for member in schema.shape.members] if schema.shape else []
    if schema.avro:
        names = [field["name"] for field in msgspec.json.decode(schema.avro)["fields"]]
    if taken := [name for name in names if name.lower() in RESERVED]:
        raise ValueError(
            f"the schema must not have the member {taken[0]}, because a field of this name contains "
            "members that do not fit; choose another name"
        )
    return schema


def _read_schema(source: Any) -> DataSchema:
    if (text := _text_of(source)) is not None:
        return _of_text(text)
    if isinstance(source, Mapping):
        return _of_object(dict(source))
    if hasattr(source, "fields") and hasattr(source, "simpleString"):
        return DataSchema("json", _struct_of(source, ""))
    return DataSchema("json", shape_of(_described(source)))


def read_schemas(sources: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schemas for patterns of event types; raise `ValueError` for a wrong schema.

    A text in DDL stays a text, because Spark needs a session to read DDL.
    """
    read = {}
    if "" in sources:
        raise ValueError("schemas must have types such as com.example.order.*, got ''")
    for pattern, source in sources.items():
        try:
            text = _text_of(source)
            read[pattern] = text if text is not None and _is_ddl(text) else data_schema(source)
        except (ValueError, TypeError) as error:
            raise ValueError(f"schemas: {pattern}: {error}") from error
    return read


def open_schemas(
    spark: SparkSession, sources: Mapping[str, Any], routes: Mapping[str, str]
) -> dict[str, DataSchema]:
    """Return the schemas of a pipeline; raise `ValueError` if one table would have several schemas."""
    schemas = {pattern: data_schema(source) for pattern, source in sources.items()}
    for schema in schemas.values():
        check_readable(spark, schema)
    for table in dict.fromkeys(("events", *routes.values())):
        found = patterns_in(table, routes, schemas)
        if len({schemas[pattern] for pattern in found}) > 1:
            raise ValueError(
                f"a table must have one schema, got the schemas of {' and '.join(found)} for the table "
                f"{table}; land each type in a separate table (tables, --route)"
            )
    return schemas


def has_avro(schemas: Mapping[str, Any]) -> bool:
    """Return whether any schema from `read_schemas` is an Avro schema, which needs ``spark-avro``."""
    return any(isinstance(schema, DataSchema) and bool(schema.avro) for schema in schemas.values())


def check_readable(spark: SparkSession, schema: DataSchema) -> None:
    """Raise `ValueError` if a session cannot read Avro or times, or has no type for a part of the schema."""
    if schema.shape and _has_time(schema.shape) and str(spark.conf.get(_POLICY)).upper() == "LEGACY":
        raise ValueError(
            f"{_POLICY} must be CORRECTED for a schema with times, got LEGACY, with which Spark reads "
            "fractions of seconds wrongly; change the setting"
        )
    try:
        _ = schema.avro and schema.type_in(spark)
    except Exception as error:  # of Spark, of its Avro, or of py4j
        java = getattr(error, "java_exception", None)
        text = str(error if java is None else java.getMessage())
        raise ValueError(
            f"this session of Spark must read the schema of Avro, got {preview(text)}; if it has no "
            f"{table_package('avro')}, start it by configure_session(…, formats=['avro'])"
        ) from error


def _has_time(shape: Shape) -> bool:
    parts = [member.shape for member in shape.members] + ([shape.item] if shape.item else [])
    return shape.spark in _TIMES or any(map(_has_time, parts))


def _text_of(source: Any) -> str | None:
    """Return the text if the source is a text or the path of a file; return None for other sources."""
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith((*_SUFFIXES, *_PROTOBUF))):
        return _read(Path(source))
    return source if isinstance(source, str) else None


def _is_ddl(text: str) -> bool:
    return not text.lstrip().startswith(("{", "[", '"'))


def _read(path: Path) -> str:
    if path.suffix in _PROTOBUF:
        raise ValueError(
            f"the schema must be DDL, JSON Schema or Avro, got {path.name}: Protobuf needs "
            "org.apache.spark:spark-protobuf_2.13, which is not published for PySpark 4.0 to 4.3"
        )
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the schema {path} must be a file of text: {error}") from None


def _of_text(text: str) -> DataSchema:
    if _is_ddl(text):
        from pyspark.errors import PySparkException
        from pyspark.sql.types import StructType

        try:
            type_: Any = StructType.fromDDL(text)
            return DataSchema("json", _struct_of(type_, ""))
        except PySparkException as error:
            raise ValueError(f"the schema must be DDL, JSON Schema or Avro, got {preview(text)}") from error
    try:
        return _of_object(msgspec.json.decode(text))
    except msgspec.DecodeError as error:
        raise ValueError(f"the schema must be JSON: {error}") from None


def _of_object(schema: Any) -> DataSchema:
    if isinstance(schema, dict) and schema.get("type") in _AVRO_TYPES:
        import fastavro

        schema = reader_schema(schema)
        try:
            fastavro.parse_schema(schema)
        except Exception as error:  # noqa: BLE001  # fastavro raises errors of any type
            raise ValueError(f"the schema must be of Avro: {type(error).__name__}: {error}") from None
        _check_parts(schema)
        _check_size(schema)
        return DataSchema("avro", avro=msgspec.json.encode(schema).decode())
    return DataSchema("json", shape_of(schema))


def _check_size(schema: Any) -> None:
    """Raise `ValueError` if Spark's type for an Avro schema would have too many nested types.

    The number of nested types in Spark's type can double at each level of an Avro schema.
    """
    sizes: dict[str, int] = {}

    def count(part: Any) -> int:
        if isinstance(part, list):
            return sum(map(count, part))
        if not isinstance(part, dict):
            return sizes.get(part.rpartition(".")[2], 1)
        parts = [part[key] for key in ("items", "values") if key in part]
        parts += [field["type"] for field in part.get("fields") or ()]
        if isinstance(part["type"], dict | list):
            parts.append(part["type"])
        size = 1 + sum(map(count, parts))
        if "name" in part:
            sizes[part["name"].rpartition(".")[2]] = size
        return size

    if count(schema) > _MOST_PARTS:
        raise ValueError(
            f"the schema of Avro must have at most {_MOST_PARTS} parts after each name is replaced by its "
            "record, got more; land a part of the data, or keep it as bytes"
        )


def _check_parts(schema: Any, where: str = "") -> None:
    """Raise `ValueError` if an Avro schema has an array of doubles, a record without fields, or wrong names.

    Spark rounds the doubles of an array in Avro data to 32 bits, and cannot write a record without fields.
    """
    if isinstance(schema, list):
        for each in schema:
            _check_parts(each, where)
    elif isinstance(schema, dict):
        check_names([field["name"] for field in schema.get("fields") or ()], where)
        if "fields" in schema and not schema["fields"]:
            raise ValueError(f"the schema must have one field or more at {where or '/'}, got none")
        items = schema.get("items")
        kinds = items if isinstance(items, list) else [items]
        if any((kind.get("type") if isinstance(kind, dict) else kind) == "double" for kind in kinds):
            raise ValueError(
                "the schema of Avro must have no array of double, whose values Spark rounds to 32 "
                f"bits, got one at {where or '/'}; use a record or a map"
            )
        for field in schema.get("fields") or ():
            _check_parts(field["type"], f"{where}/{field['name']}")
        for part in ("items", "values", "type"):
            _check_parts(schema.get(part), where)


def _described(class_: Any) -> Any:
    """Return the JSON Schema that describes a class."""
    if hasattr(class_, "model_json_schema"):
        return class_.model_json_schema()
    try:
        return msgspec.json.schema(class_)
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            "a schema must be DDL, JSON Schema, Avro, the path of a file, a StructType, a dataclass, a "
            f"msgspec Struct or a pydantic model, got {preview(class_)}"
        ) from error


def _struct_of(type_: StructType, where: str, *, nullable: bool = False) -> Shape:
    members = (
        Member(
            field.name,
            _shape_of_type(field.dataType, pointer(where, field.name), nullable=field.nullable),
            required=not field.nullable,
        )
        for field in type_.fields
    )
    return struct(tuple(members), where, nullable=nullable)


def _with_type(shape: Shape, path: tuple[str, ...], type_: DataType, where: str) -> Shape:
    """Return a shape with a new type at a path; the path consists of names of fields in Spark."""
    if not path:
        return _shape_of_type(type_, where, nullable=shape.nullable)
    name, rest = path[0], path[1:]
    if shape.item is not None:
        item = _with_type(shape.item, rest, type_, pointer(where, "*"))
        return msgspec.structs.replace(shape, item=item)
    members = (
        msgspec.structs.replace(member, shape=_with_type(member.shape, rest, type_, pointer(where, name)))
        if member.name == name
        else member
        for member in shape.members
    )
    return msgspec.structs.replace(shape, members=tuple(members))


def _shape_of_type(type_: DataType, where: str, *, nullable: bool) -> Shape:
    kind: Any = type_
    name = type_.typeName().upper()
    if name == "STRUCT":
        return _struct_of(kind, where, nullable=nullable)
    if name == "ARRAY":
        item = _shape_of_type(kind.elementType, pointer(where, "*"), nullable=kind.containsNull)
        return Shape("ARRAY", nullable, item)
    sql = type_.simpleString().upper()
    if name == "MAP" and kind.keyType.simpleString() == "string":
        value = _shape_of_type(kind.valueType, pointer(where, "*"), nullable=kind.valueContainsNull)
        return Shape("MAP", nullable, value)
    if sql not in BY_NAME and name != "DECIMAL":
        raise ValueError(f"the schema must have types that JSON has, got {sql} at {where}")
    return Shape(sql, nullable)
