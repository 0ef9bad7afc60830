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

from cloudevents_kafka.attributes.types import CORE
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
_DATA: Final = "X'2264617461223A'"
_DATA_BYTES: Final = len('"data":')
_WHITE_SPACE: Final = " \t\r\n"
# Spark's defaults let pass more than JSON. The nesting limit is lower than any other reader's here.
_STRICT: Final = (
    "map('allowNonNumericNumbers', 'false', 'allowSingleQuotes', 'false', 'maxNestingDepth', '200',"
    " 'columnNameOfCorruptRecord', '__ce_corrupt')"
)


def column(name: str) -> Column:
    """Return an intermediate column."""
    return F.col(PREFIX + name)


def add(df: DataFrame, columns: dict[str, str]) -> DataFrame:
    """Add intermediate columns, given as SQL: one call to Java, where PySpark's columns take hundreds."""
    return df.selectExpr("*", *(f"{sql} AS {PREFIX}{name}" for name, sql in columns.items()))


def open_documents(df: DataFrame) -> DataFrame:
    """Add ``words`` (a document's members cut at their quotes, null if unsure), ``raw`` and ``no_data``.

    Names are the second of every four words, and their texts the fourth; all is cut by
    bytes, as Spark counts the characters of a text anew each time.
    """
    text = "CAST(value AS STRING)"
    head = f"regexp_extract({text}, {quoted(grammar.JSON_HEAD)}, 0)"
    df = add(df, {"head": f"CASE WHEN __ce_json AND is_valid_utf8({text}) THEN {head} END"})
    at = "octet_length(__ce_head) + 1"
    body = f"substring(value, {at} + {_DATA_BYTES})"
    begins = f"__ce_head <> '' AND substring(value, {at}, {_DATA_BYTES}) = {_DATA}"
    ends = f"octet_length(value) = {at} AND substring(value, {at}) = X'7D' AND endswith(__ce_head, '\"')"
    df = add(df, {"body": f"CASE WHEN {begins} THEN {body} END", "no_data": f"coalesce({ends}, false)"})
    df = add(df, {"tail": _tail()})
    df = add(df, {"raw": _raw(), "members": _members()})
    loose = f"__ce_members RLIKE {quoted(grammar.JSON_UNQUOTED)}"
    replaced = f'regexp_replace(__ce_members, {quoted(grammar.json_extension())}, \'"$1":"$2"\')'
    df = add(df, {"requoted": f"CASE WHEN {loose} THEN {replaced} END"})
    return add(df, {"words": _words()})


def _tail() -> str:
    plain = "endswith(__ce_body, X'7D7D') OR endswith(__ce_body, X'5D7D')"  # }} and ]}
    found = f"regexp_extract(CAST(__ce_body AS STRING), {quoted(grammar.JSON_TAIL)}, 0)"
    return f"CASE WHEN {plain} THEN '}}' WHEN __ce_body IS NOT NULL THEN {found} END"


def _raw() -> str:
    cut = "CAST(substring(__ce_body, 1, octet_length(__ce_body) - octet_length(__ce_tail)) AS STRING)"
    # The tail takes all white space before it; so there is none where this does not begin with some.
    tight = "__ce_tail = '}' AND (startswith(__ce_body, X'7B') OR startswith(__ce_body, X'5B'))"
    trimmed = f"btrim({cut}, {quoted(_WHITE_SPACE)})"
    return f"CASE WHEN {tight} THEN {cut} WHEN __ce_tail <> '' THEN {trimmed} END"


def _members() -> str:
    return "CASE WHEN __ce_no_data THEN __ce_head WHEN __ce_tail <> '' THEN concat(__ce_head, __ce_tail) END"


def _words() -> str:
    """Cut at quotes; null where a value was left that is no text."""
    once = "size(filter(headers.key, key -> key = 'content-type')) = 1"
    still = f"__ce_requoted RLIKE {quoted(grammar.JSON_UNQUOTED)}"
    return f"""CASE WHEN NOT __ce_json OR NOT {once} THEN NULL
        WHEN __ce_requoted IS NULL THEN split(__ce_members, '"')
        WHEN NOT {still} THEN split(__ce_requoted, '"') END"""


def data() -> str:
    """Return a document's payload, of ``data`` or of ``data_base64``; null if there is none."""
    media, raw, json = "__ce_datacontenttype", "__ce_raw", _says_json()
    essence = f"substring_index(lower({media}), ';', 1)"
    parameters = f"substring(lower({media}), length({essence}) + 1)"
    charset = "('', ';charset=utf-8', '; charset=utf-8')"
    plain = f"({media} IS NULL OR {media} = 'application/json' OR {parameters} IN {charset})"
    text = rf"""CASE WHEN startswith({raw}, '"') AND NOT contains({raw}, r'\')
        THEN substring({raw}, 2, length({raw}) - 2) END"""
    decoded = "try_to_binary(__ce_data_base64, 'base64')"
    return f"""CASE
        WHEN {raw} IS NOT NULL THEN
            CASE WHEN __ce_data_base64 IS NULL AND {plain} AND {is_value(raw)}
            THEN CAST(CASE WHEN {json} THEN {raw} ELSE {text} END AS BINARY) END
        WHEN base64({decoded}) = __ce_data_base64 THEN {decoded} END"""


def _says_json() -> str:
    """Tell whether a document's data is JSON, by its content type or as it has none."""
    media = "__ce_datacontenttype"
    essence = f"substring_index(lower({media}), ';', 1)"
    json = f"endswith({essence}, '/json') OR endswith({essence}, '+json')"
    return f"{media} IS NULL OR {media} = 'application/json' OR {json}"


def data_kind() -> str:
    """Return what a document's payload came as: JSON, a text, or, null, bytes."""
    return f"CASE WHEN __ce_raw IS NOT NULL THEN IF({_says_json()}, 'json', 'text') END"


def extension_types() -> str:
    """Return the types of a document's extensions that are no texts; null where all are."""
    found = f"regexp_extract_all(__ce_members, {quoted(grammar.json_extension())}, %d)"
    types = f"transform({found % 2}, value -> IF(value IN ('true', 'false'), 'Boolean', 'Integer'))"
    return f"IF(__ce_requoted IS NOT NULL, map_from_arrays({found % 1}, {types}), NULL)"


def is_value(raw: str) -> str:
    r"""Tell whether a text is surely one JSON value.

    An object or array is put into an array before a sentinel that it does not hold;
    where the reader then finds the sentinel in second place, nothing in the text can
    have closed the array or opened another. Surrogates (``\ud800``) may stand alone.
    """
    doubtful = rf"contains({raw}, r'\ud') OR contains({raw}, r'\uD') OR contains({raw}, '{_SENTINEL}')"
    in_object = _second(raw, f'{{"~":{_SENTINEL}}}', "STRUCT<`~`: BIGINT>")
    return f"""CASE WHEN {doubtful} THEN false
        WHEN startswith({raw}, '{{') THEN {in_object}['~'] = {_SENTINEL}
        WHEN startswith({raw}, '[') THEN {_second(raw, _SENTINEL, "STRING")} = '{_SENTINEL}'
        ELSE {raw} RLIKE {quoted(grammar.JSON_SCALAR)} END"""


def _second(raw: str, sentinel: str, kind: str) -> str:
    return f"get(from_json(concat('[', {raw}, ',{sentinel}]'), 'ARRAY<{kind}>', {_STRICT}), 1)"


def quoted(text: str) -> str:
    """Write a text as a raw literal of SQL, where an apostrophe becomes its code in regular expressions."""
    text = text.replace("'", "\\x27")
    return f"r'{text}'"
