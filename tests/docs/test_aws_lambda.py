"""The page about AWS Lambda makes the record that was in the topic of each one in Lambda's form."""

from __future__ import annotations

import random
from base64 import b64encode
from typing import Any

import msgspec

from cloudevents_kafka import Record
from tests.docs import pages
from tests.support.cases import each

PAGE = pages.DOCS / "how-to" / "aws_lambda.md"
ALL_BYTES = bytes(range(256))


def in_lambdas_form(record: Record) -> dict[str, Any]:
    """Return a record as Lambda passes it: signed numbers of Java, and no member for what is null."""
    known = {"key": record.key, "value": record.value}
    return {
        **{name: b64encode(value).decode() for name, value in known.items() if value is not None},
        "headers": [
            {name: None if value is None else list(memoryview(value).cast("b"))}
            for name, value in record.headers
        ],
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestampType": "CREATE_TIME",
    }


def randomized(seed: int) -> Record:
    """Return a record with random bytes, some of them null or empty, and names that repeat."""
    draw = random.Random(seed)

    def value() -> bytes | None:
        return draw.choice([None, b"", ALL_BYTES, draw.randbytes(draw.randrange(9))])

    headers = [(draw.choice(["ce_id", "content-type", "x"]), value()) for _ in range(draw.randrange(5))]
    return Record(
        key=value(), value=value(), headers=headers, topic="orders", partition=3, offset=seed, timestamp=seed
    )


@each("seed", range(50))
def test_the_record_is_that_of_the_topic(seed: int) -> None:
    """Key, value, headers and place are as they were, for any bytes and nulls, after JSON."""
    record = randomized(seed)
    event = {"records": {"orders-3": [in_lambdas_form(record)], "orders-4": []}}
    scope: dict[str, Any] = {}
    exec(pages.blocks(PAGE)[0].code, scope)
    assert list(scope["records"](msgspec.json.decode(msgspec.json.encode(event)))) == [record]
