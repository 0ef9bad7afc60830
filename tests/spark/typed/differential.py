"""Random schemas and hostile data, and a model of their values, compared row by row with what Spark reads.

    python -m tests.spark.typed.differential --seed 1 --parts 20 --rows 50000

The law: no row ends a job, each row has the value of the model or a reason, and none is null where the model
has a value. A part has a seed, of which all of it follows: seven of ten rows are JSON, the others Avro.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cloudevents_kafka.spark import data_as
from cloudevents_kafka.spark.typed.schemas import DataSchema, data_schema
from tests.spark.typed import avro_model, json_model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_OF_A_SCHEMA: Final = 5_000
_OF_JSON: Final = 0.7
_LONGEST_REASON: Final = 600


def compare_part(spark: SparkSession, seed: int, rows: int) -> dict[str, int]:
    """Compare a part, and return how many rows had a value and how many were misfits; raise an error."""
    chance = random.Random(seed)
    outcomes = {"values": 0, "misfits": 0}
    for schema, payloads, expected in _schemas(chance, rows):
        found = read(spark, schema, payloads)
        for n, (payload, wanted, (value, reason)) in enumerate(zip(payloads, expected, found, strict=True)):
            place = f"seed {seed}, row {n}: {payload[:300]!r} by {_text_of(schema)}"
            if wanted is None:
                assert value is None, f"{place}: must be a misfit, got {value}"
                assert reason is not None, f"{place}: must have a reason"
                assert reason.startswith("data: "), f"{place}: {reason}"
                assert len(reason) < _LONGEST_REASON, f"{place}: {reason}"
                outcomes["misfits"] += 1
            else:
                assert reason is None, f"{place}: must be {wanted}, got {reason}"
                assert repr(_plain(value)) == repr(_plain(wanted)), f"{place}: must be {wanted}, got {value}"
                outcomes["values"] += 1
    return outcomes


def _schemas(chance: random.Random, rows: int) -> Iterator[tuple[DataSchema, list[bytes], list[Any]]]:
    left = rows
    while left > 0:
        number = min(left, ROWS_OF_A_SCHEMA)
        left -= number
        if chance.random() < _OF_JSON:
            shape = json_model.random_shape(chance)
            payloads = [json_model.random_payload(chance, shape) for _ in range(number)]
            yield DataSchema("json", shape), payloads, [json_model.expected(shape, each) for each in payloads]
        else:
            schema = avro_model.random_schema(chance)
            payloads = [avro_model.random_datum(chance, schema) for _ in range(number)]
            yield data_schema(schema), payloads, [avro_model.expected(schema, each) for each in payloads]


def read(spark: SparkSession, schema: DataSchema, payloads: list[bytes]) -> list[tuple[Any, str | None]]:
    """Return the value and the reason of each payload, by one job of Spark, as plain values of Python."""
    rows = [(n, "t", payload) for n, payload in enumerate(payloads)]
    events = spark.createDataFrame(rows, "n INT, type STRING, data BINARY")
    table: Any = data_as(events, schema).select("n", "value", "data_error").toArrow()
    found = sorted(table.to_pylist(maps_as_pydicts="strict"), key=lambda row: row["n"])
    return [(row["value"], row["data_error"]) for row in found]


def _plain(value: Any) -> Any:
    """Return a value in which times are in UTC, and zeros have no sign: -0 may be read as an integer."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in sorted(value.items())}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value + 0.0 if isinstance(value, float) else value


def _text_of(schema: DataSchema) -> str:
    return schema.avro or (schema.shape.ddl() if schema.shape else "")


def main() -> None:
    """Compare parts, and print what each had."""
    from tests.spark.typed.session import quick_session

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--rows", type=int, default=50_000)
    options = parser.parse_args()
    spark = quick_session()
    for seed in range(options.seed, options.seed + options.parts):
        start = time.monotonic()
        outcomes = compare_part(spark, seed, options.rows)
        took = time.monotonic() - start
        sys.stdout.write(f"seed {seed}: {options.rows:,} rows, {outcomes}, {took:.0f} s\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
