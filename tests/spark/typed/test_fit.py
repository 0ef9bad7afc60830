"""A schema that does not fit its table is read in the types of the table, for any two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from cloudevents_kafka.spark.pipeline.tables._evolution import differences
from cloudevents_kafka.spark.typed.schemas import DataSchema
from cloudevents_kafka.spark.typed.shape import BY_NAME, Member, Shape
from tests.support.strategies import scaled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCALARS = [name for name in BY_NAME if name not in {"ARRAY", "MAP", "STRUCT"}]


def _struct(shapes: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    members = st.dictionaries(st.sampled_from(["a", "b", "x.y"]), shapes, min_size=1)
    return members.map(
        lambda found: Shape("STRUCT", members=tuple(Member(name, shape) for name, shape in found.items()))
    )


SHAPES = st.recursive(
    st.sampled_from(_SCALARS).map(Shape),
    lambda inner: st.one_of(
        _struct(inner), st.builds(Shape, st.sampled_from(["ARRAY", "MAP"]), st.just(value=False), inner)
    ),
    max_leaves=4,
)


def test_after_fitting_nothing_is_a_misfit(spark: SparkSession) -> None:
    """Values of the fitted schema differ from the table only in what the table can take."""

    @settings(max_examples=scaled(30))
    @given(_struct(SHAPES), _struct(SHAPES), st.booleans())
    def check(table: Shape, wanted: Shape, widens: bool) -> None:  # noqa: FBT001  # hypothesis passes it by position
        column = DataSchema("json", table).type_in(spark)
        schema = DataSchema("json", wanted)

        def misfits(schema: DataSchema) -> dict[tuple[str, ...], object]:
            found = differences(column, schema.type_in(spark))
            kinds = {"misfit"} if widens else {"misfit", "wider"}
            return {change.path: change.found for change in found if change.kind in kinds}

        types = misfits(schema)
        fitted = schema.fit(types, column)  # type: ignore[arg-type]  # found is a type where it differs
        assert misfits(fitted) == {}
        assert types or fitted == schema

    check()
