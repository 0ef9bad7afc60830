"""The function with which Spark's Python workers check payloads; its module does not import PySpark.

A row is one JSON text, and the result for the row is also one JSON text, as in `cloudevents_kafka.spark.udf`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pandas as pd  # type: ignore[import-untyped]  # published without types

from cloudevents_kafka.spark.typed.framed import Writers, check_payload
from cloudevents_kafka.spark.typed.schemas import DataSchema


class _Suspect(msgspec.Struct):
    """A payload that Python must check, the number of its schema, its content type, and the frame's header.

    In the JSON of a `_Suspect`, bytes are written in base64.
    """

    n: int
    data: bytes | None = None
    header: bytes | None = None
    type: str | None = None


def payload_checker(
    schemas: Sequence[DataSchema], writers: Writers | None, *, rescue: bool
) -> Callable[[pd.Series], pd.Series]:
    """Return a function that checks payloads, and converts JSON of a `_Suspect` to JSON of a `Checked`.

    If the JSON of a row is null, the result for this row is null.
    """

    def check_batch(suspects: pd.Series) -> pd.Series:  # PySpark reads these types
        def check(text: str) -> str:
            suspect = msgspec.json.decode(text, type=_Suspect)
            schema = schemas[suspect.n]
            data, header, type_ = suspect.data, suspect.header, suspect.type
            checked = check_payload(schema, data, header, writers, type_, rescue=rescue)
            return msgspec.json.encode(checked._asdict()).decode()

        return suspects.map(check, na_action="ignore")

    return check_batch
