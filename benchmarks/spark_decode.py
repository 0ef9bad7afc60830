"""Spark: events decoded per second, compared with the raw read and with the SDK in a Python UDF.

Then the records that each other SDK wrote (spec-conformance/samples), repeated, compared with the
same events as this library writes them. Then, read leniently, the records of each producer in
spec-conformance/lenient.md that deviate, compared with the same events as valid records.

Rows are read from Parquet with the columns of Spark's Kafka source and written to a sink that
discards them, so the raw read is the limit. Each way has two warm-ups, because the JVM compiles for
a while; then all ways run by turns. The SDK reads fewer rows, because it is slow.

python benchmarks spark_decode [-- --rows 1000000 --sdk-rows 50000 --rounds 3 --cores 2]
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudevents_kafka import Decoded, Event, Record, decode, to_record
from cloudevents_kafka.binding import lenient_mode
from cloudevents_kafka.spark import decode_events
from cloudevents_kafka.spark.java.reader import reader_sql
from cloudevents_kafka.spark.pipeline import local_session

sys.path[:0] = [str(Path(__file__).parents[1] / "spec-conformance")]

from conformance.notation import RecordNotation, as_record, convert  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TARGETS = {
    ("binary", "sdk"): 25.0,
    ("structured", "sdk"): 8.0,
    ("binary", "raw"): 0.4,
    ("structured", "raw"): 0.3,
}
PEER_TARGET = 0.6
PRODUCER_TARGET = 0.5
PRODUCERS = Path(__file__).parents[1] / "spec-conformance" / "vectors" / "real-producers.json"
FOLDER = Path(__file__).parents[1] / "spec-conformance" / "samples"
WARM_UPS = 2
CORE = ("id", "source", "type", "specversion", "subject", "time", "datacontenttype", "dataschema")
EVENT = "id string, source string, type string, specversion string, subject string, time timestamp, \
datacontenttype string, dataschema string, extensions map<string,string>, data binary, error string"

# One event, as SQL over the number n: eight core attributes, two extensions, some 290 bytes of data.
ATTRIBUTES = {
    "specversion": "'1.0'",
    "id": "concat_ws('-', substr(uid, 1, 8), substr(uid, 9, 4), substr(uid, 13, 4), substr(uid, 17))",
    "source": "concat('/plants/', n % 50, '/lines/', n % 7)",
    "type": "concat('com.example.reading.', elt(1 + n % 4, 'created', 'updated', 'closed', 'v1'))",
    "subject": "concat('sensor-', n % 10000)",
    "time": "concat('2024-', lpad(1 + n % 12, 2, '0'), '-', lpad(1 + n % 28, 2, '0'), 'T12:',"
    " lpad(n % 60, 2, '0'), ':07.', lpad(n % 1000000, 6, '0'), 'Z')",
    "datacontenttype": "'application/json'",
    "dataschema": "'https://schemas.example.com/reading/1'",
    "partitionkey": "concat('sensor-', n % 10000)",
    "traceparent": "concat('00-', uid, '-', substr(uid, 5, 16), '-01')",
}
DATA = (
    """concat('{"sensor":"sensor-', n % 10000, '","value":', n % 1000, '.', lpad(n % 100, 2, '0'),"""
    """ ',"unit":"celsius","status":{"battery":', n % 100, ',"flags":["ok","calibrated"],"site":"plant ',"""
    """ n % 50, '"},"note":"reading of sensor in section ', n % 900, ' taken automatically, checked"""
    """ against the limits of its plant and stored by the collector","operator":"shift ', n % 3,"""
    """ '","seq":', n, '}')"""
)


def main() -> None:
    """Generate, measure, print."""
    options = _options()
    with (
        tempfile.TemporaryDirectory(prefix="spark-decode-") as folder,
        local_session(master=f"local[{options.cores}]", conf={"spark.driver.memory": "4g"}) as spark,
    ):
        print(f"{options.rows:,} rows ({options.sdk_rows:,} for the SDK), {options.cores} cores, rows/s:")
        for mode in ("binary", "structured"):
            many = generate(spark, mode, options.rows, options.cores, Path(folder))
            few = generate(spark, mode, options.sdk_rows, options.cores, Path(folder))
            _report(mode, _measured(_ways(many, few), options))
        _report_peers(spark, options, Path(folder))
        _report_producers(spark, options, Path(folder))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sdk-rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rows", type=int, default=200_000)
    parser.add_argument("--cores", type=int, default=2)
    return parser.parse_args()


def generate(spark: SparkSession, mode: str, rows: int, tasks: int, folder: Path) -> DataFrame:
    """Return the rows of events, written to Parquet with one file for each task unless it exists."""
    path = str(folder / f"{mode}-{rows}")
    if Path(path).exists():
        return spark.read.parquet(path).coalesce(tasks)
    df = spark.range(0, rows, 1, tasks).selectExpr("id as n", "md5(cast(id as string)) as uid")
    df = df.selectExpr("n", *(f"{text} as {name}" for name, text in ATTRIBUTES.items()), f"{DATA} as data")
    value, headers = _record(mode)
    df.selectExpr(
        "cast(partitionkey as binary) as key",
        f"cast({value} as binary) as value",
        "'events' as topic",
        "cast(n % 8 as int) as partition",
        "n as offset",
        "timestamp_millis(1714000000000 + n) as timestamp",
        "0 as timestampType",
        f"{headers} as headers",
    ).write.parquet(path)
    return spark.read.parquet(path).coalesce(tasks)


def _record(mode: str) -> tuple[str, str]:
    """Return a record's value and headers, as SQL over the columns of an event."""
    if mode == "binary":
        names = {n: "content-type" if n == "datacontenttype" else f"ce_{n}" for n in ATTRIBUTES}
        return "data", _headers({header: name for name, header in names.items()})
    members = ", ',', ".join(f"""'"{n}":"', {n}, '"'""" for n in ATTRIBUTES)
    return (
        f"""concat('{{', {members}, ',"data":', data, '}}')""",
        _headers({"content-type": "'application/cloudevents+json; charset=UTF-8'"}),
    )


def _headers(texts: dict[str, str]) -> str:
    one = (f"named_struct('key', '{name}', 'value', cast({text} as binary))" for name, text in texts.items())
    return f"array({', '.join(one)})"


# --- the ways ------------------------------------------------------------------------


def _ways(many: DataFrame, few: DataFrame) -> dict[str, Callable[[], DataFrame]]:
    return {
        "raw read": lambda: many,
        "decode_events": lambda: decode_events(many),
        "SDK in a Python UDF": lambda: _by_sdk(few, arrow=False),
        "SDK in an Arrow UDF": lambda: _by_sdk(few, arrow=True),
    }


def _by_sdk(df: DataFrame, *, arrow: bool) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    read = F.udf(_read_by_sdk, EVENT, useArrow=arrow)
    event = read("key", "value", "headers").alias("event")
    return df.select(event, "key", "topic", "partition", "offset", "timestamp").select("event.*", "*")


def _read_by_sdk(key: Any, value: Any, headers: Any) -> tuple[Any, ...]:
    """Return the columns of an event, read as a user of the SDK would, or the error."""
    from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
    from cloudevents.core.formats.json import JSONFormat

    try:
        message = KafkaMessage(
            headers={h["key"]: bytes(h["value"]) for h in headers},
            key=None if key is None else bytes(key),
            value=None if value is None else bytes(value),
        )
        event = from_kafka(message, JSONFormat())
        attributes = dict(event.get_attributes())
        core = [attributes.pop(name, None) for name in CORE]
        data = event.get_data()
        if data is not None and not isinstance(data, bytes):
            data = (data if isinstance(data, str) else json.dumps(data)).encode()
        return (*core, {name: str(text) for name, text in attributes.items()}, data, None)
    except Exception as error:  # noqa: BLE001  # a bad row must not end the job
        return (*(None for _ in range(len(CORE) + 2)), str(error))


# --- the records of other SDKs ---


def _report_peers(spark: SparkSession, options: argparse.Namespace, folder: Path) -> None:
    """Print the rate for the records of each SDK, and the share of the rows that went to Python."""
    for path in sorted(FOLDER.glob("*.jsonl.gz")):
        for mode in ("binary", "json"):
            events = [event for event in _samples(path) if event[0] == mode]
            if not events:
                continue
            frames = {
                name: _repeated(spark, records, options, folder / f"{path.name}-{mode}-{name}")
                for name, records in (
                    ("theirs", [record for _, record, _ in events]),
                    ("ours", [record for _, _, record in events]),
                )
            }
            ways = {name: lambda df=df: decode_events(df) for name, df in frames.items()}
            seconds = _measured(ways, argparse.Namespace(**{**vars(options), "rows": options.peer_rows}))
            ratio = statistics.median(seconds["ours"]) / statistics.median(seconds["theirs"])
            rate = 1 / statistics.median(seconds["theirs"])
            share = _share_to_python(frames["theirs"])
            verdict = "met" if ratio >= PEER_TARGET else "MISSED"
            print(
                f"  {path.name.partition('.')[0]:<11} {mode:<7} {rate:12,.0f}  to ours {ratio:5.2f}"
                f"   target {PEER_TARGET}  {verdict}   to Python {share:.1%}",
                flush=True,
            )


def _samples(path: Path) -> Iterator[tuple[str, Record, Record]]:
    """Yield mode, record and the record that this library writes for the event, of all valid events."""
    for line in gzip.decompress(path.read_bytes()).splitlines():
        kept = json.loads(line)
        record = Record(value=_bytes(kept["value"]), headers=[(n, _bytes(v)) for n, v in kept["headers"]])
        decoded = decode(record)
        if isinstance(decoded, Decoded):
            mode = "binary" if kept["encoding"] == "binary" else "structured"
            event = decoded.event.replace(id=decoded.event.id)  # which forgets the received bytes
            yield kept["encoding"], record, to_record(event, mode=mode)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _repeated(
    spark: SparkSession, records: list[Record], options: argparse.Namespace, path: Path
) -> DataFrame:
    """Return records, repeated up to a number of rows, from Parquet."""
    rows = [(record.value, record.headers) for record in records]
    header = "array<struct<key:string,value:binary>>"
    few = spark.createDataFrame(rows, f"value binary, headers {header}").coalesce(1)
    times = options.peer_rows // len(rows) + 1
    many = spark.range(0, times, 1, options.cores).crossJoin(few).limit(options.peer_rows)
    many.selectExpr("id AS offset", "value", "headers").write.parquet(str(path))
    return spark.read.parquet(str(path)).coalesce(options.cores)


# --- the records of known producers, read leniently ---


def _report_producers(spark: SparkSession, options: argparse.Namespace, folder: Path) -> None:
    """Print the rate for the records of each producer that deviate, and the share that went to Python."""
    for number, (source, pairs) in enumerate(_deviating().items()):
        frames = [
            _repeated(spark, list(records), options, folder / f"producer-{number}-{part}")
            for part, records in enumerate(zip(*pairs, strict=True))
        ]
        theirs, valid = frames
        ways = {
            "theirs": lambda df=theirs: decode_events(df, lenient=True),
            "valid": lambda df=valid: decode_events(df),
        }
        seconds = _measured(ways, argparse.Namespace(**{**vars(options), "rows": options.peer_rows}))
        ratio = statistics.median(
            own / other for own, other in zip(seconds["valid"], seconds["theirs"], strict=True)
        )
        share = _share_to_python(theirs, lenient=True)
        verdict = "met" if ratio >= PRODUCER_TARGET else "MISSED"
        print(
            f"  {source[:44]:<44} {1 / statistics.median(seconds['theirs']):12,.0f}  to valid {ratio:5.2f}"
            f"   target {PRODUCER_TARGET}  {verdict}   to Python {share:.1%}",
            flush=True,
        )


def _deviating() -> dict[str, list[tuple[Record, Record]]]:
    """Return records that only lenient reading accepts, each with a valid one of the event, by producer."""
    found: dict[str, list[tuple[Record, Record]]] = {}
    for case in json.loads(PRODUCERS.read_text("utf-8"))["cases"]:
        record = as_record(convert(case["record"], RecordNotation))
        decoded = decode(record, lenient=True)
        if isinstance(decoded, Decoded) and decoded.tolerated:
            event = decoded.event
            attributes = {name: event[name] for name in event if name != "dataschema"}  # some are not URIs
            valid = Event(**attributes, data=event.data)
            mode = "binary" if lenient_mode(record.headers) == "binary" else "structured"
            found.setdefault(case["source"], []).append((record, to_record(valid, mode=mode)))
    return found


def _share_to_python(df: DataFrame, *, lenient: bool = False) -> float:
    sql = reader_sql(df, lenient=lenient)
    read = df.selectExpr(f"{sql} IS NULL AS left_").where("left_").count()
    return read / df.count()


# --- the figures ---------------------------------------------------------------------


def _measured(
    ways: dict[str, Callable[[], DataFrame]], options: argparse.Namespace
) -> dict[str, list[float]]:
    """Return the seconds per row of each way, one figure for each round."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(-WARM_UPS, options.rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            way().write.format("noop").mode("overwrite").save()
            spent = time.perf_counter() - start
            if turn >= 0:
                seconds[name].append(spent / (options.sdk_rows if "SDK" in name else options.rows))
    return seconds


def _report(mode: str, seconds: dict[str, list[float]]) -> None:
    for name, figures in seconds.items():
        print(f"  {mode:<11} {name:<28} {1 / statistics.median(figures):12,.0f}", flush=True)
    ours = seconds["decode_events"]
    for against, name in (("sdk", "SDK in a Python UDF"), ("raw", "raw read")):
        ratio = statistics.median(other / own for own, other in zip(ours, seconds[name], strict=True))
        target = TARGETS.get((mode, against))
        verdict = "" if target is None else f"   target {target}  {'met' if ratio >= target else 'MISSED'}"
        print(f"  {mode:<11} decode_events : {name:<23} {ratio:8.2f}x{verdict}", flush=True)


if __name__ == "__main__":
    main()
