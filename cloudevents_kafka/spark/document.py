"""JSON documents of structured mode: taken apart where that is surely right.

A document is cut in three: its members before ``data``, the value of ``data``, and
the members after it. The outer two must be names and plain texts without escapes; the
middle must be one JSON value, which Spark's JSON reader is asked without building it.
Then the whole is JSON with just these members, wherever the cuts were made, and the
exact text of the data is at hand.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # the name that all of PySpark's users know

from cloudevents_kafka.attributes import CORE
from cloudevents_kafka.spark import grammar

PREFIX: Final = "__ce_"
"""What the names of intermediate columns start with."""

JSON: Final = (
    "application/cloudevents+json",
    "application/cloudevents+json; charset=utf-8",
    "application/cloudevents+json;charset=utf-8",
)
"""The content types, in lower case, that are surely structured mode in JSON."""

KNOWN: Final = (*CORE, "data_base64")
"""The members of a JSON document that are no extensions, but for ``data``."""

_SENTINEL: Final = "7364728193"
_DATA: Final = '"data":'
_WHITE_SPACE: Final = " \t\r\n"
# Spark's defaults let pass more than JSON. The nesting limit is lower than any other reader's here.
_STRICT: Final = {"allowNonNumericNumbers": "false", "allowSingleQuotes": "false", "maxNestingDepth": "200"}


def column(name: str) -> Column:
    """Return an intermediate column."""
    return F.col(PREFIX + name)


def open_documents(df: DataFrame) -> DataFrame:
    """Add ``members`` (names and texts by turns, null if unsure), ``raw`` (the data) and ``no_data``."""
    text = F.col("value").cast("string")
    head = F.when(column("json") & F.is_valid_utf8(text), F.regexp_extract(text, grammar.JSON_HEAD, 0))
    df = df.withColumn(PREFIX + "head", head)
    rest = F.substring(F.col("value"), F.octet_length(column("head")) + 1, F.octet_length("value")).cast(
        "string"
    )
    df = df.withColumn(PREFIX + "rest", F.when(column("head") != "", rest))
    rest = column("rest")
    body = F.when(rest.startswith(_DATA), F.substring(rest, len(_DATA) + 1, F.octet_length(rest)))
    df = df.withColumn(PREFIX + "body", body)
    df = df.withColumn(PREFIX + "tail", _tail())
    return df.withColumns({PREFIX + name: value for name, value in _parts().items()})


def _tail() -> Column:
    body = column("body")
    plain = body.endswith("}}") | body.endswith("]}")
    return F.when(plain, F.lit("}")).when(body.isNotNull(), F.regexp_extract(body, grammar.JSON_TAIL, 0))


def _parts() -> dict[str, Column]:
    head, body, tail = column("head"), column("body"), column("tail")
    no_data = F.coalesce((column("rest") == "}") & head.endswith('"'), F.lit(False))
    length = F.length(body) - F.length(tail)
    raw = F.when(tail != "", F.btrim(F.substring(body, F.lit(1), length), F.lit(_WHITE_SPACE)))
    members = F.when(no_data, head).when(tail != "", F.concat(head, tail))
    quoted = F.when(
        members.rlike(grammar.JSON_UNQUOTED), F.regexp_replace(members, grammar.json_extension(), '"$1":"$2"')
    ).otherwise(members)
    once = F.size(F.filter(column("keys"), lambda key: key == "content-type")) == 1
    return {"no_data": no_data, "raw": raw, "members": F.when(column("json") & once, _by_turns(quoted))}


def _by_turns(members: Column) -> Column:
    """Names and texts by turns; null where a value was left that is no text."""
    plain = ~members.rlike(grammar.JSON_UNQUOTED)
    return F.when(plain, F.regexp_extract_all(members, F.lit(grammar.JSON_QUOTED), F.lit(1)))


def data() -> Column:
    """Return a document's payload, of ``data`` or of ``data_base64``; null if there is none."""
    raw, media, encoded = column("raw"), column("datacontenttype"), column("data_base64")
    lower = F.lower(media)
    essence = F.substring_index(lower, ";", 1)
    json = (
        media.isNull() | (media == "application/json") | essence.endswith("/json") | essence.endswith("+json")
    )
    parameters = F.substring(lower, F.length(essence) + 1, F.length(lower))
    plain = media.isNull() | parameters.isin("", ";charset=utf-8", "; charset=utf-8")
    text = F.when(~raw.contains("\\") & raw.startswith('"'), F.substring(raw, F.lit(2), F.length(raw) - 2))
    good = encoded.isNull() & plain & is_value(raw)
    decoded = F.try_to_binary(encoded, F.lit("base64"))
    return F.when(raw.isNotNull(), F.when(good, F.when(json, raw).otherwise(text).cast("binary"))).when(
        encoded.isNotNull() & (F.base64(decoded) == encoded), decoded
    )


def is_value(raw: Column) -> Column:
    """Tell whether a text is surely one JSON value.

    An object or array is put into an array before a sentinel that it does not hold;
    where the reader then finds the sentinel in second place, nothing in the text can
    have closed the array or opened another.
    """
    doubtful = (
        raw.contains("\\ud") | raw.contains("\\uD") | raw.contains(_SENTINEL)
    )  # surrogates may stand alone
    return (
        F.when(doubtful, F.lit(False))
        .when(
            raw.startswith("{"),
            _second(raw, f'{{"~":{_SENTINEL}}}', "struct<`~`:bigint>")["~"] == int(_SENTINEL),
        )
        .when(raw.startswith("["), _second(raw, _SENTINEL, "string") == _SENTINEL)
        .otherwise(raw.rlike(grammar.JSON_SCALAR))
    )


def _second(raw: Column, sentinel: str, kind: str) -> Column:
    both = F.concat(F.lit("["), raw, F.lit(f",{sentinel}]"))
    return F.get(F.from_json(both, f"array<{kind}>", _STRICT), F.lit(1))
