"""Landing a topic: the pipeline compared with a plain Spark job, and with decoding alone.

The plain job lands the columns of Kafka by the record's date, in the same kind of table, from the same
topic, in batches of the same size. Decoding alone is such a job with `decode_events`. The three run by
turns, on a broker that is filled once. The rate is that of the batches, as Spark reports their times.

The parts: "rates" of each topic; "cost" is the time of a batch of one record, less the plain job's;
"layout" counts the files of events of 5,000 types over three years, and compares the time with the plain
job's; "typed" lands data by a schema of ten fields, and compares it with landing the same data as bytes;
"columns" writes landed events without one column each, to Parquet, and compares the processors' time;
"memory" has the peaks of Java and Python for more and more records, each in processes of their own.

python benchmarks landing [-- --records 400000 --batch 200000 --rounds 2 --cores 2
    --parts rates cost layout memory typed columns --topics binary … --to parquet delta iceberg
    --most-records 1000000]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _landing_jobs import FORMATS, Jobs, Took, children, descendants, session
from _landing_topics import TYPED_DDL, TYPED_SCHEMA, fill, many_types, topics, typed

from cloudevents_kafka.testing import LocalBroker

RATE_TARGET = 0.75
DECODE_TARGET = 0.92
COST_TARGET = 1.0
LAYOUT_TARGET = 2.0  # times the seconds of the plain job
BATCHES = 20  # of one record
TYPED_TARGET = 0.7
TYPED_ROUNDS = 5
COLUMN_ROUNDS = 5
PARTS = ("rates", "cost", "layout", "memory", "typed", "columns")


def main() -> None:
    """Start the broker, measure the parts, print."""
    options = _options()
    if options.landed_by:
        _land_and_report(options)
        return
    with tempfile.TemporaryDirectory(prefix="landing-") as name, LocalBroker() as broker:
        folder = Path(name)
        if set(options.parts) - {"memory"}:
            with session(folder, options.cores) as spark:
                jobs = Jobs(spark, broker.bootstrap_servers, folder, options.batch)
                if "rates" in options.parts:
                    _report_rates(broker, jobs, options)
                if "cost" in options.parts:
                    single = Jobs(spark, broker.bootstrap_servers, folder / "single", 1)
                    _report_cost(broker, single, options)
                if "layout" in options.parts:
                    _report_layout(broker, jobs, folder, options)
                if "typed" in options.parts:
                    _report_typed(broker, jobs, options)
                if "columns" in options.parts:
                    for topic in options.topics:
                        _report_columns(broker, jobs, topic, options)
        if "memory" in options.parts:
            _report_memory(broker, folder, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--topics", nargs="+", choices=list(topics()), default=list(topics()))
    parser.add_argument("--to", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("--most-records", type=int, default=1_000_000, help="of the part memory")
    parser.add_argument("--landed-by", nargs=4, help=argparse.SUPPRESS)  # servers, topic, kind, folder
    return parser.parse_args()


# --- rates ---


def _report_rates(broker: LocalBroker, jobs: Jobs, options: argparse.Namespace) -> None:
    print(
        f"{options.records:,} records, batches of {options.batch:,}, local[{options.cores}], records/s; ours "
        f"to plain: target {RATE_TARGET}; where decoding alone stays below, to it: target {DECODE_TARGET}\n"
        f"{'topic':<20} {'to':<8} {'plain':>8} {'ours':>8} {'decoded':>8}  to plain  decoded to plain"
        "  to decoded  target  by processor time: the same three",
        flush=True,
    )
    makers = topics()
    around: dict[str, list[float]] = {}
    for name in options.topics:
        topic = fill(broker, name, makers[name](), options.records)
        for kind in options.to:
            took = _by_turns(jobs, topic, kind, options.rounds, warm=name == options.topics[0])
            _print_rates(name, kind, took)
            for way, turns in took.items():
                around.setdefault(way, []).extend(turn.around for turn in turns)
        broker.delete_topic(topic)
    medians = ", ".join(f"{way} {statistics.median(seconds):.1f} s" for way, seconds in around.items())
    print(f"around the batches, to start and end a query: {medians}", flush=True)


def _by_turns(jobs: Jobs, topic: str, kind: str, rounds: int, *, warm: bool) -> dict[str, list[Took]]:
    """Return what each way took in each round; Java compiles what is new in a turn that is left out."""
    ways = {"plain": jobs.plain, "ours": jobs.pipeline, "decoded": jobs.decoded}
    took: dict[str, list[Took]] = {name: [] for name in ways}
    for turn in range(-1 if warm else 0, rounds):
        for name, way in ways.items():
            done = way(topic, kind)
            if turn >= 0:
                took[name].append(done)
    return took


def _print_rates(topic: str, kind: str, took: dict[str, list[Took]]) -> None:
    plain, ours, decoded = (statistics.median(turn.rate for turn in turns) for turns in took.values())
    to_plain, limit, to_decoded = ours / plain, decoded / plain, ours / decoded
    is_met = to_plain >= RATE_TARGET or (limit < RATE_TARGET and to_decoded >= DECODE_TARGET)
    cpu = [statistics.median(turn.rate_by_processors for turn in turns) for turns in took.values()]
    print(
        f"{topic:<20} {kind:<8} {plain:8,.0f} {ours:8,.0f} {decoded:8,.0f}  {to_plain:8.2f}  {limit:16.2f}"
        f"  {to_decoded:10.2f}  {'met   ' if is_met else 'MISSED'}"
        f"  {cpu[1] / cpu[0]:8.2f}  {cpu[2] / cpu[0]:16.2f}  {cpu[1] / cpu[2]:10.2f}",
        flush=True,
    )


# --- the fixed cost of a batch ---


def _report_cost(broker: LocalBroker, jobs: Jobs, options: argparse.Namespace) -> None:
    print(f"\na batch of one record, median of {BATCHES}, seconds; ours less plain: target {COST_TARGET:g}")
    topic = fill(broker, "single", topics()["binary"](), BATCHES + 5, partitions=1)
    for kind in options.to:
        plain, ours = (way(topic, kind).median_of_last(BATCHES) for way in (jobs.plain, jobs.pipeline))
        verdict = "met" if ours - plain < COST_TARGET else "MISSED"
        print(f"{kind:<8} plain {plain:.3f}  ours {ours:.3f}  less {ours - plain:.3f}  {verdict}", flush=True)


# --- the files of the default layout ---


def _report_layout(broker: LocalBroker, jobs: Jobs, folder: Path, options: argparse.Namespace) -> None:
    print(
        f"\n{options.records:,} events of 5,000 types over three years, in batches of {options.batch:,}; "
        f"target: a file for each task of a batch, at most {LAYOUT_TARGET:g} times the time of a plain job",
        flush=True,
    )
    topic = fill(broker, "many-types", many_types(), options.records)
    for kind in options.to:
        plain = jobs.plain(topic, kind)
        out = folder / f"layout-{kind}"
        took = jobs.landed(topic, kind, out)
        files = sum(1 for _ in (out / "events").rglob("*.parquet"))
        most = options.cores * len(took.batches)
        is_met = files <= most and took.whole <= LAYOUT_TARGET * plain.whole
        seconds = f"{took.whole:.1f} s, plain {plain.whole:.1f} s"
        verdict = "met" if is_met else "MISSED"
        print(f"{kind:<8} {files} files of events, at most {most}; {seconds}  {verdict}", flush=True)
        shutil.rmtree(out)


# --- typed data ---


def _report_typed(broker: LocalBroker, jobs: Jobs, options: argparse.Namespace) -> None:
    records = options.batch
    print(
        f"\n{records:,} events with data of ten fields, in Delta, records/s; target {TYPED_TARGET}",
        flush=True,
    )
    for name, schema in (("json", TYPED_DDL), ("avro", TYPED_SCHEMA)):
        topic = fill(broker, f"typed-{name}", typed(avro=name == "avro"), records)
        rates: dict[str, list[float]] = {"bytes": [], "typed": []}
        for turn in range(-1, TYPED_ROUNDS):
            for way, more in (("bytes", {}), ("typed", {"schemas": {"*": schema}})):
                took = jobs.pipeline(topic, "delta", **more)
                if turn >= 0:
                    rates[way].append(took.rate)
        plain, ours = (statistics.median(each) for each in rates.values())
        verdict = "met" if ours >= TYPED_TARGET * plain else "MISSED"
        print(f"{name:<8} bytes {plain:8,.0f}  typed {ours:8,.0f}  {ours / plain:.2f}  {verdict}", flush=True)
        broker.delete_topic(topic)


# --- columns ---


def _report_columns(broker: LocalBroker, jobs: Jobs, name: str, options: argparse.Namespace) -> None:
    """Print what of the writing of events each column takes: of the processors' time and of the bytes."""
    topic = fill(broker, name, topics()[name](), options.records)
    with jobs.kept_events(topic) as events:
        ways = {"": events, **{column: events.drop(column) for column in events.columns[:-1]}}
        seconds: dict[str, list[float]] = {column: [] for column in ways}
        sizes: dict[str, int] = {}
        for turn in range(-1, COLUMN_ROUNDS):
            for column in random.Random(turn).sample(list(ways), len(ways)):  # Java is faster at the end
                took, sizes[column] = jobs.written(ways[column])
                if turn >= 0:
                    seconds[column].append(took)
    whole = statistics.median(seconds.pop(""))
    print(
        f"\n{name}: {options.records:,} events to Parquet, {whole:.2f} s of processors, {sizes['']:,} bytes; "
        "the share of each column of the time, and of the bytes",
        flush=True,
    )
    for column, times in sorted(seconds.items(), key=lambda each: statistics.median(each[1])):
        share = 1 - statistics.median(times) / whole
        print(f"{column:<16} {share:6.1%} {1 - sizes[column] / sizes['']:6.1%}", flush=True)
    broker.delete_topic(topic)


# --- memory ---


def _report_memory(broker: LocalBroker, folder: Path, options: argparse.Namespace) -> None:
    """Print the peaks of memory, in processes of their own with a heap of 1 GB."""
    print("\npeaks of resident memory in MB, the mixture with broken records, a heap of 1 GB:", flush=True)
    records = topics()["mixture-broken"]()
    size = 100_000
    while size <= options.most_records:
        topic = fill(broker, f"memory-{size}", records, size)
        for kind in options.to:
            where = (broker.bootstrap_servers, topic, kind, str(folder / f"memory-{kind}-{size}"))
            flags = [f"--cores={options.cores}", f"--batch={options.batch}"]
            command = [sys.executable, __file__, *flags, "--landed-by", *where]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            print(f"{kind:<8} {size:12,} records: {done.stdout.splitlines()[-1]}", flush=True)
        size *= 10


def _land_and_report(options: argparse.Namespace) -> None:
    """Land a topic, and print the peaks of memory of this process and its Java."""
    servers, topic, kind, name = options.landed_by
    folder = Path(name)
    folder.mkdir()
    with session(folder, options.cores, "1g") as spark:
        start = time.monotonic()
        Jobs(spark, servers, folder, options.batch).landed(topic, kind, folder / "lake")
        seconds = time.monotonic() - start
        (java,) = children(os.getpid())
        workers = max(map(_peak, descendants(java)), default=0)
        print(f"Java {_peak(java):,}, Python {_peak(os.getpid()):,}, worker {workers:,}, {seconds:.0f} s")
    shutil.rmtree(folder)


def _peak(process: int) -> int:
    """Return the peak in MB, and 0 for a worker that has just ended."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    peaks = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return round(next(peaks, 0) / 1024)


if __name__ == "__main__":
    main()
