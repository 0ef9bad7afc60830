"""Each format of tables is known in each place that needs it."""

from __future__ import annotations

from cloudevents_kafka.spark.pipeline.tables import _open
from cloudevents_kafka.spark.table_formats import FORMATS, TABLE_FORMATS


def test_each_format_has_classes_and_jars() -> None:
    """A format of `TableFormat` has its jars in `FORMATS`, and its classes of tables."""
    assert set(_open._TABLES) == set(TABLE_FORMATS)
    assert set(TABLE_FORMATS) <= set(FORMATS)
