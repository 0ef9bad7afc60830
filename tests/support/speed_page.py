"""Write the tables of `docs/speed.md` from those of `benchmarks/README.md`, so that a figure has one source.

    python -m tests.support.speed_page

A table of the page replaces the one after the line `<!-- table: NAME -->`. A figure that misses its target
is followed by the target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "speed.md"
SOURCE: Final = ROOT / "benchmarks" / "README.md"
_TABLE: Final = re.compile(r"(<!-- table: (\w+) -->\n\n)(?:\|.*\n)*\n?")
_ENCODINGS: Final = {"binary": "binary", "json": "JSON", "protobuf": "Protobuf"}
Row = list[str]


def markdown() -> str:
    """Return the page with the tables of today's figures."""
    return _TABLE.sub(lambda found: f"{found[1]}{_written(_TABLES[found[2]]())}\n", PAGE.read_text("utf-8"))


def source(*columns: str) -> Iterator[Row]:
    """Yield the rows of the only table of the source whose head begins with these columns."""
    head = f"| {' | '.join(columns)} |"
    table = re.compile(rf"^{re.escape(head)}.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
    (found,) = table.findall(SOURCE.read_text("utf-8"))
    for line in found.splitlines():
        yield [cell.strip() for cell in line[1:-1].split("|")]


def figure(value: str, target: str) -> str:
    """Return a figure, with its target if it misses it.

    >>> figure("0.53", "0.75: missed by 0.2"), figure("2.52", "2.5: met")
    ('0.53 (target 0.75)', '2.52')
    """
    return f"{value} (target {target.partition(':')[0]})" if "missed" in target else value


def _converters() -> Iterator[Row]:
    yield ["work", "compared with", "ways", "slowest way", "slowest 5 %", "median"]
    for work, ways, lowest, each, slow, median, middle, keyless in source("group", "shapes"):
        other = _COMPARED.get(work, "the SDK")
        yield [work, other, ways, figure(lowest, each), slow, figure(median, middle)]
        if "JSON" in work:
            without_keys = keyless.split("; ")
            missed = [f"{target.partition(':')[0]}: missed" for target in (each, middle)]
            slowest, usual = (figure(*pair) for pair in zip(without_keys, missed, strict=True))
            yield [f"{work}, records without keys", other, ways, slowest, "", usual]


def _peers() -> Iterator[Row]:
    yield ["written by the SDK for", "encoding", "slowest 5 %", "median"]
    sdk = ""
    for name, _, median, middle, slow, each, _ in source("SDK and encoding", "records"):
        encoding, _, mark = name.removeprefix("- ").partition(", ")
        sdk = sdk if name.startswith("-") else name
        shown = f"{_ENCODINGS[encoding]}{mark and f', read {mark}'}" if name.startswith("-") else "all"
        yield [sdk, shown, figure(slow, each), figure(median, middle)]


def _clients() -> Iterator[Row]:
    yield ["loop", "compared with", "ratio of the rates"]
    for work, ratio, _, target in source("work", "ratio of the rates", "by CPU"):
        loop, _, other = work.partition(", compared with ")
        yield [loop, other, figure(ratio, target)]
    for work, ratio, _, target, *_ in source("loop", "ratio of the rate", "by CPU"):
        loop, _, other = work.partition(" / ")
        yield [loop, other, figure(ratio, target)]


def _spark() -> Iterator[Row]:
    yield ["ratio of `decode_events`", "binary mode", "structured JSON"]
    for ratio, binary, target, structured, other in source("ratio of `decode_events`", "binary"):
        yield [ratio, figure(binary, target), figure(structured, other)]


def _landing() -> Iterator[Row]:
    yield [
        "events",
        "to",
        "records per second",
        "ratio to the plain job",
        "ratio to `decode_events`",
        "target",
    ]
    topic = ""
    for name, to, plain, ours, _, decoded in source("topic", "to", "plain, records/s"):
        topic = name or topic
        rate = round(int(plain.replace(",", "")) * float(ours), -3)
        missed = float(ours) < _OF_PLAIN and float(decoded) < _OF_DECODED
        yield [topic, to, f"{rate:,.0f}", ours, decoded, "missed" if missed else "met"]


def _protocol() -> Iterator[Row]:
    yield ["work", "ratio to kafka-python 3.0", "ratio to confluent-kafka"]
    yield from source("work", "to kafka-python 3.0")


_COMPARED: Final = {
    "read leniently what breaks no rule": "strict reading",
    "read and write Avro and Protobuf": "fastavro and protobuf",
}
_OF_PLAIN: Final = 0.75
_OF_DECODED: Final = 0.92
_TABLES: Final[dict[str, Callable[[], Iterator[Row]]]] = {
    "converters": _converters,
    "peers": _peers,
    "clients": _clients,
    "spark": _spark,
    "landing": _landing,
    "protocol": _protocol,
}


def _written(rows: Iterator[Row]) -> str:
    head, *body = rows
    lines = (f"| {' | '.join(row)} |\n" for row in (head, *body))
    return "".join([next(lines), "|---" * len(head) + "|\n", *lines])


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
