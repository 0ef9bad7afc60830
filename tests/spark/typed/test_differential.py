"""Spark has the values of a model for random schemas and hostile data: a million rows, and a sample."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from cloudevents_kafka.spark.typed.schemas import DataSchema, data_schema
from tests.spark.typed import avro_model, json_model
from tests.support.strategies import scaled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = 20
ROWS = 50_000
LONG = (pytest.mark.release, pytest.mark.long)
SAMPLE = 600
SCHEMAS = 40


def test_python_has_the_values_of_the_models() -> None:
    """What Python finds a misfit is one of the model, for many schemas of JSON and Avro, without Spark."""
    chance = random.Random(47)
    for _ in range(scaled(SCHEMAS)):
        shape, avro = json_model.random_shape(chance), avro_model.random_schema(chance)
        json_, binary = DataSchema("json", shape), data_schema(avro)
        for _ in range(50):
            text, datum = json_model.random_payload(chance, shape), avro_model.random_datum(chance, avro)
            pairs = (
                (json_.check(text), json_model.expected(shape, text)),
                (binary.check(datum), avro_model.expected(avro, datum)),
            )
            for checked, expected in pairs:
                assert (checked.payload is None) == (expected is None), (checked.reason, text, datum)
                assert (checked.reason or "").encode().startswith(b"data: ") == (expected is None)


@pytest.mark.parametrize(
    ("seed", "rows"),
    [
        (1, SAMPLE),
        (2, SAMPLE),
        *(pytest.param(seed, ROWS, marks=LONG) for seed in range(101, 101 + PARTS)),
    ],
)
@pytest.mark.timeout(1_200)
def test_spark_has_the_values_of_the_models(spark: SparkSession, seed: int, rows: int) -> None:
    """No row ends a job, and none is null, or another value, where the model has one."""
    from tests.spark.typed.differential import compare_part

    outcomes = compare_part(spark, seed, rows)
    assert sum(outcomes.values()) == rows
    assert min(outcomes.values()) > rows // 50
