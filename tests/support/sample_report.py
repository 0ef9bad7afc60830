"""Pages of ``report`` with figures of each kind: of a usual topic, and of untrusted input.

python -m tests.support.sample_report FOLDER
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from msgspec.structs import replace

from cloudevents_kafka import Event, Record, to_record
from cloudevents_kafka.binding import decode
from cloudevents_kafka.cli.kafka.lag import Lag
from cloudevents_kafka.cli.report.page import PageContents, to_html
from cloudevents_kafka.counting import RecordCounts

START = 1_795_262_400_000
DAY = 86_400_000
BROKEN = [("ce_specversion", b"1.0"), ("ce_id", b""), ("ce_source", b"/s"), ("ce_type", b"t")]
HOSTILE = "<script>alert(1)</script>]]>\u202e" + "&" * 500 + "\x00&amp;"


def usual() -> PageContents:
    """Return a report about a day of orders, a few of them broken, and a group that is behind."""
    counts, chance = RecordCounts(), random.Random(1)
    types = [f"com.example.order.{name}" for name in ("placed", "paid", "packed", "shipped", "returned")]
    for number in range(2000):
        size = min(200_000, int(chance.lognormvariate(6, 1.5)))
        event = Event(
            id=str(number), source=f"/shop/{number % 3}", type=chance.choice(types), data=bytes(size)
        )
        mode = chance.choice(["binary", "structured"])
        key = f"customer-{number % 30}" if number % 4 else None
        record = to_record(event, mode=mode, key=key)
        time = START + int(chance.triangular(0, DAY, 0.7 * DAY))
        counts.add(decode(replace(record, topic="orders", partition=0, offset=number, timestamp=time)))
    for number in range(120):
        headers = BROKEN if number % 3 else []
        place = {"topic": "orders", "partition": 0, "offset": 2000 + number}
        counts.add(
            decode(
                Record(value=b'{"order": 17}', headers=headers, timestamp=START + number * 600_000, **place)
            )
        )
    lags = [Lag(f"orders[{number}]", 100 * number, 700) for number in range(6)]
    return PageContents("Topic orders", [("brokers", "localhost:9092"), ("group", "billing")], counts, lags)


def hostile(names: int = 300) -> PageContents:
    """Return a report about very many long names, times from 1970 to 9999, and large values."""
    counts, chance = RecordCounts(), random.Random(2)
    for number in range(names):
        text = f"{number}{HOSTILE}"
        for labels in (
            counts.types,
            counts.sources,
            counts.keys,
            counts.errors,
            counts.modes,
            counts.tolerated,
        ):
            labels.add(text, 10_000 if number < 50 else 1)
        counts.times.add(chance.randrange(-(2**63), 2**63), text)
        counts.sizes[number % 32] += 1
        headers = [(text, text.encode("utf-8", "surrogatepass"))] * 100
        record = Record(
            key=text.encode(), value=b"<&\"'" * 100_000, headers=headers, topic="o" * 249, partition=0
        )
        counts.add_sample(text, text, record, 400_000)
    counts.events = counts.others = counts.errors.total
    lags = [Lag(f"{'t' * 240}[{number}]", 2**62, 2**63 - 1 - number) for number in range(names)]
    return PageContents(HOSTILE, [(HOSTILE, HOSTILE)] * 20, counts, lags)


def main() -> None:
    """Write both pages."""
    for report in (usual, hostile):
        Path(sys.argv[1], f"{report.__name__}.html").write_text(to_html(report()), encoding="utf-8")


if __name__ == "__main__":
    main()
