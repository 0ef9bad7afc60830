"""The fast path without Java: columns that read a record where it is surely a valid event.

For Spark Connect, and wherever else `compiled` cannot add its classes; that one is two to six times as fast.

Each step adds columns to a DataFrame of Kafka's columns; their names start with
`PREFIX`. The last is ``sure``: whether the others hold the event. All else is left to
the converters (`exact`).

Why it looks as it does, all measured: the columns are SQL, as a tree of PySpark's columns
takes thousands of calls to Java, and seconds; a step's columns are computed once, where
one big struct would compute shared parts again and again; names are found by position,
and those left over by bits, since maps and lambda functions are not compiled. The two
lambda functions run over next to nothing, long lists of extensions; and they keep Spark
from compiling all steps to one method, which the JVM would find too big to optimize
(8,000 bytes; ten times slower).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from cloudevents_kafka.attributes.types import CORE
from cloudevents_kafka.spark import document, grammar
from cloudevents_kafka.spark.document import JSON, add, quoted

_FEW: Final = 4  # extensions and foreign headers that are read without a lambda function
_MOST_NAMES: Final = 62  # the bits of a long, but for its sign's and the next
_NAMES_OF_WORDS: Final = 0x2222_2222_2222_2222
_NAMES: Final = "IF(__ce_json, __ce_words, headers.key)"
_VALUES: Final = "IF(__ce_json, slice(__ce_words, 3, 1000), CAST(headers.value AS ARRAY<STRING>))"
_PLAIN_TYPES: Final = "('application/json', 'text/plain', 'application/xml', 'application/octet-stream')"
_SEPARATOR: Final = quoted(grammar.SEPARATOR)
_MARK: Final = quoted(grammar.MARK)


def read_surely(df: DataFrame) -> DataFrame:
    """Add the columns of an event, and ``sure``, to Kafka's columns."""
    df = document.open_documents(_with_headers(df))
    df = _with_attributes(df)
    return _with_verdict(_with_extensions(df))


def _with_headers(df: DataFrame) -> DataFrame:
    """Tell the content mode: ``json`` for structured mode in JSON, ``binary`` for binary mode."""
    at = "CAST(array_position(headers.key, 'content-type') AS INT) - 1"
    df = add(df, {"content_type": f"lower(CAST(get(headers, {at}).value AS STRING))"})
    types = ", ".join(map(quoted, JSON))
    structured = "startswith(__ce_content_type, 'application/cloudevents')"
    return add(
        df,
        {
            "json": f"coalesce(__ce_content_type IN ({types}), false)",
            "binary": f"NOT coalesce({structured}, false)",
        },
    )


def _with_attributes(df: DataFrame) -> DataFrame:
    """Find the core attributes; ``left`` has a bit for each name that is none."""
    df = add(df, {"names": _NAMES, "values": _VALUES})
    df = add(df, {f"at_{name}": _position(name) for name in document.KNOWN})
    values = {
        name: f"IF(__ce_at_{name} > 0, {_value_at(f'__ce_at_{name}')}, NULL)" for name in document.KNOWN
    }
    # The name in place 0 that is not there has the sign's bit, which is outside.
    taken = " | ".join(_bit(f"coalesce(__ce_at_{name}, 0)") for name in document.KNOWN)
    places = f"IF(__ce_json, {_NAMES_OF_WORDS}L, -1L)"
    size = "size(__ce_names)"
    left = f"IF({size} <= {_MOST_NAMES}, ({_bit(f'{size} + 1')} - 1L) & {places} & ~({taken}), NULL)"
    return add(df, {**values, "left": left})


def _position(attribute: str) -> str:
    headers = {"datacontenttype": "'content-type'", "data_base64": "NULL"}
    header = headers.get(attribute, f"'ce_{attribute}'")
    name = f"IF(__ce_json, '{attribute}', {header})"
    return f"CAST(array_position(__ce_names, {name}) AS INT)"


def _value_at(at: str, values: str = "__ce_values") -> str:
    """Return the value of the name at a position, from 1 on."""
    return f"get({values}, {at} - 1)"


def _bit(at: str) -> str:
    return f"shiftleft(1L, {at} - 1)"


def _with_extensions(df: DataFrame) -> DataFrame:
    """Join what is left as ``name=value`` texts; a repeated or misplaced name leaves a mark."""
    one_less, two_less = _less("__ce_left"), _less(_less("__ce_left"))
    df = add(df, {"left_1": one_less, "left_2": two_less, "at_1": _lowest("__ce_left")})
    three_less = _less("__ce_left_2")
    others = {"__ce_left_1": 2, "__ce_left_2": 3, three_less: 4}
    df = add(df, {f"at_{n}": _lowest(bits) for bits, n in others.items()})
    places = range(1, _FEW + 1)
    names = {f"name_{n}": f"get(__ce_names, __ce_at_{n} - 1)" for n in places}
    df = add(df, names | {f"value_{n}": _value_at(f"__ce_at_{n}") for n in places})
    few = ", ".join(_extension(f"__ce_at_{n}", f"__ce_name_{n}", f"__ce_value_{n}") for n in places)
    at = f"filter(sequence(1, size({_NAMES})), at -> (__ce_left & {_bit('at')}) <> 0)"
    one = _extension("at", f"get({_NAMES}, at - 1)", _value_at("at", _VALUES))
    many = f"array_join(transform({at}, at -> {one}), {_SEPARATOR})"
    count = "bit_count(__ce_left)"
    # Not try_to_timestamp, whose type is that of the session's timestamps.
    instant = "try_cast(__ce_time AS TIMESTAMP_LTZ)"
    text = f"""CASE WHEN __ce_left = 0 THEN '' WHEN {count} <= {_FEW} THEN concat_ws({_SEPARATOR}, {few})
        WHEN {count} > {_FEW} THEN {many} END"""
    return add(df, {"extensions": text, "instant": instant, "data": document.data()})


def _less(bits: str) -> str:
    """Take the lowest bit away."""
    return f"({bits} & ({bits} - 1L))"


def _lowest(bits: str) -> str:
    """Return the place of the lowest bit, from 1 on; 64 if there is none, where no name is."""
    return f"bit_count({bits} ^ ({bits} - 1L))"


def _extension(at: str, name: str, value: str) -> str:
    good = f"array_position({_NAMES}, {name}) = {at} AND NOT contains({value}, {_SEPARATOR})"
    text = f"concat(IF(__ce_json, {name}, substring({name}, 4)), '=', {value})"
    return f"""CASE WHEN __ce_json OR startswith({name}, 'ce_')
        THEN CASE WHEN {value} IS NULL THEN NULL WHEN {good} THEN {text} ELSE {_MARK} END
        WHEN {name} = 'content-type' THEN {_MARK} END"""


def _with_verdict(df: DataFrame) -> DataFrame:
    none = "(__ce_no_data AND __ce_data_base64 IS NULL)"
    read = f"IF(__ce_json, __ce_data IS NOT NULL OR {none}, __ce_binary)"
    return add(df, {"sure": f"coalesce({read} AND {_good_attributes()}, false)"})


def _good_attributes() -> str:
    """Tell whether attributes surely break no rule; null is no."""
    texts = grammar.between(
        "__ce_id",
        "__ce_type",
        "__ce_source",
        "coalesce(__ce_subject, '-')",
        "coalesce(__ce_dataschema, 'a:')",
        "__ce_extensions",
    )
    text = (
        f"concat({', '.join(part if part.startswith(('__ce', 'coal')) else quoted(part) for part in texts)})"
    )
    time, media = "__ce_time", "__ce_datacontenttype"
    return f"""__ce_specversion = '1.0'
        AND ({time} IS NULL OR (__ce_instant IS NOT NULL
            AND (({_is_plain(time)}) OR {time} RLIKE {quoted(grammar.TIME)})))
        AND ({media} IS NULL OR {media} IN {_PLAIN_TYPES} OR {media} RLIKE {quoted(grammar.MEDIA_TYPE)})
        AND ({text} RLIKE {quoted(grammar.attributes(ascii_only=True))}
            OR {text} RLIKE {quoted(grammar.attributes())})"""


def _is_plain(time: str) -> str:
    """Tell whether a text that Spark reads as a timestamp is RFC 3339 in UTC, as nearly all are."""
    marks = {5: "-", 8: "-", 11: "T", 14: ":", 17: ":"}  # two digits have room between them
    shape = " AND ".join(f"substring({time}, {at}, 1) = '{mark}'" for at, mark in marks.items())
    fraction = f"length({time}) BETWEEN 22 AND 30 AND substring({time}, 20, 1) = '.'"
    years = f"{time} >= '1900' AND {time} < '2200' AND NOT contains({time}, ' ')"
    return f"endswith({time}, 'Z') AND (length({time}) = 20 OR ({fraction})) AND {shape} AND {years}"


def columns() -> dict[str, str]:
    """Return the event's columns by their names in `event_schema`; null where it is not sure."""
    texts = {name: f"__ce_{name}" for name in CORE if name != "time"}
    none = "CAST(map() AS MAP<STRING, STRING>)"
    pairs = f"str_to_map(__ce_extensions, {_SEPARATOR}, '=')"
    columns = {
        **texts,
        "time": "__ce_instant",
        "time_text": "__ce_time",
        "extensions": f"IF(__ce_extensions = '', {none}, {pairs})",
        "extension_types": f"IF(__ce_json, {document.extension_types()}, NULL)",
        "data": "IF(__ce_json, __ce_data, value)",
        "data_kind": f"IF(__ce_json, {document.data_kind()}, NULL)",
        "mode": "IF(__ce_json, 'structured', 'binary')",
    }
    return {name: f"IF(__ce_sure, {sql}, NULL)" for name, sql in columns.items()}
