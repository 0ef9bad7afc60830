"""Compare what two checkouts read in the same generated records, strictly and leniently.

    python -m tests.support.reading_differences --against PATH [--records N] [--seed N] [--show N]

Records are those of the peers and of real producers, with random changes of names, values, headers
and bytes. The events with all their parts, what was accepted, and the errors with their problems in
order must be equal. Print the number of records and of differences, and the first ones. Exit with
status 1 if there are any.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
Pairs = list[tuple[str, bytes | None]]
Parts = tuple[Pairs, bytes | None]

NAMES: Final = (
    *("id", "source", "type", "specversion", "time", "subject", "dataschema", "datacontenttype", "data"),
    *("data_base64", "sequence", "sampledrate", "deprecated", "partitionkey", "traceparent", "x", "traceID"),
    *("expirytime", "severitynumber", "a_b", "", "Größe", "iodebeziumtxId", "dataref", "y" * 300),
)
TEXTS: Final = (
    *(
        "",
        "1",
        "1.0",
        "/shop",
        "a b",
        "é",
        "\x7f",
        "\ufffe",
        '"quoted"',
        '"/a"',
        "True",
        "true",
        "FALSE",
        "5",
    ),
    *("-1", "2147483648", "2018-04-05T17:31:00Z", "2018-04-05 17:31:00Z", "noon", "http://a/b", "rel ative"),
    *("text/plain", "application/json", "application/xml; charset=latin1", "no type", "urn:x", "x" * 300),
    *("application/cloudevents+json", "application/cloudevents", "AA==", "00-0af7-b7-01"),
)
MEMBERS: Final = (
    "null",
    "true",
    "5",
    "1.5",
    "2147483648",
    "{}",
    '{"a" : [1, 2]}',
    "[]",
    '"\\ud800"',
    "1e999",
    '""',
)
TYPES: Final = (
    *(
        b"application/cloudevents+json",
        b"application/cloudevents+json; charset=utf-8",
        b"Application/CloudEvents+JSON",
    ),
    *(b"application/cloudevents", b"application/cloudevents+avro", b"application/cloudevents+protobuf"),
    *(b"application/cloudevents+xml", b"application/cloudevents-batch+json", b"application/json", b"\xff"),
    *(b"application/cloudevents+json; charset=latin1", b"text/xml", b"", b" application/cloudevents"),
)


def bases() -> list[Parts]:
    """Return the records that are changed."""
    found: list[Parts] = []
    for path in sorted((ROOT / "spec-conformance" / "samples").glob("*.jsonl.gz")):
        for line in islice(gzip.decompress(path.read_bytes()).splitlines(), 0, None, 3):
            kept = json.loads(line)
            headers = [(name, _decoded(value)) for name, value in kept["headers"]]
            found.append((headers, _decoded(kept["value"])))
    required = [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/shop"), ("ce_type", b"t")]
    members = b'{"specversion":"1.0","id":"1","source":"/shop","type":"t","subject":"x","data":{"a":"b"}}'
    found += [(required, b"17"), ([], members), ([("content-type", TYPES[0])], members)] * 300
    return found


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


# --- changes ---


def change_header(chance: random.Random, headers: Pairs, value: bytes | None) -> Parts:
    """Rename, repeat, remove or replace a header, or add one."""
    headers = list(headers)
    at = chance.randrange(len(headers)) if headers else 0
    if not headers or chance.random() < 0.3:
        name = chance.choice(("ce_", "ce-", "CE_", "cloudEvents:", "ce_", "")) + chance.choice(NAMES)
        headers.insert(at, (name, chance.choice((None, chance.choice(TEXTS).encode()))))
        return headers, value
    name, content = headers[at]
    rename = (str.title, str.upper, lambda text: text.replace("_", "-"), lambda text: text + "x", str.lower)
    match chance.randrange(6):
        case 0:
            headers[at] = chance.choice(rename)(name), content
        case 1:
            headers.insert(at, (chance.choice(rename)(name), chance.choice((content, b"other", None))))
        case 2:
            headers.pop(at)
        case 3:
            headers[at] = name, chance.choice((None, b"\xff", chance.choice(TEXTS).encode()))
        case 4:
            headers.insert(at, headers[at])
        case _:
            headers.append(("ce_datacontenttype", chance.choice(TEXTS).encode()))
    return headers, value


def change_content_type(chance: random.Random, headers: Pairs, value: bytes | None) -> Parts:
    """Replace, add or remove the content-type."""
    headers = [pair for pair in headers if pair[0] != "content-type" or chance.random() < 0.1]
    if chance.random() < 0.8:
        name = chance.choice(("content-type", "content-type", "content-type", "Content-Type", "contentType"))
        headers.insert(chance.randint(0, len(headers)), (name, chance.choice(TYPES)))
    return headers, value


def change_member(chance: random.Random, headers: Pairs, value: bytes | None) -> Parts:
    """Add, replace, rename, repeat or remove a member of a JSON object."""
    try:
        pairs = json.loads(value or b"", object_pairs_hook=list)
        members = [(str(name), json.dumps(member)) for name, member in pairs]
    except (ValueError, TypeError):
        return headers, value
    at = chance.randint(0, len(members))
    new = chance.choice(
        (chance.choice(MEMBERS), json.dumps(chance.choice(TEXTS), ensure_ascii=chance.random() < 0.5))
    )
    match chance.randrange(4):
        case 0:
            members.insert(at, (chance.choice(NAMES), new))
        case 1 if members:
            members[at - 1] = members[at - 1][0], new
        case 2 if members:
            members[at - 1] = (
                chance.choice((str.title, str.upper, str.lower))(members[at - 1][0]),
                members[at - 1][1],
            )
        case _ if members:
            members.insert(at, chance.choice(members)) if chance.random() < 0.3 else members.pop(at - 1)
    between = chance.choice((",", ", ", " ,\n"))
    text = "{" + between.join(f"{json.dumps(name)}:{member}" for name, member in members) + "}"
    return headers, text.encode("utf-8", "surrogatepass")


def change_bytes(chance: random.Random, headers: Pairs, value: bytes | None) -> Parts:
    """Insert, remove or replace bytes of the value."""
    changed = bytearray(value or b"")
    at = chance.randint(0, len(changed))
    piece = chance.choice((b"", b'"', b"\\", b",", b"{", b"\xef\xbb\xbf", b"\xff", b"null", b"\\u0064", b" "))
    changed[at : at + chance.randrange(3)] = piece
    return headers, chance.choice((None, bytes(changed), bytes(changed), b"\xef\xbb\xbf" + (value or b"")))


CHANGES: Final[tuple[Callable[[random.Random, Pairs, bytes | None], Parts], ...]] = (
    *(change_header, change_header, change_content_type, change_member, change_member, change_member),
    change_bytes,
)


def records(count: int, seed: int) -> Iterator[Parts]:
    """Yield generated records: the same ones for the same seed."""
    chance = random.Random(seed)
    known = bases()
    for _ in range(count):
        headers, value = chance.choice(known)
        for _ in range(chance.choice((0, 1, 1, 2, 2, 3, 4))):
            headers, value = chance.choice(CHANGES)(chance, headers, value)
        yield headers, value


# --- outcomes ---


def write_outcomes(count: int, seed: int) -> None:
    """Write a line for what each record is, by the checkout that Python imports."""
    from cloudevents_kafka import Decoded, Record, decode
    from cloudevents_kafka.event import raw_parts

    for headers, value in records(count, seed):
        line: list[Any] = []
        for lenient in (False, True):
            item = decode(Record(headers=headers, value=value), lenient=lenient)
            if isinstance(item, Decoded):
                event = item.event
                attributes, encoded = raw_parts(event)
                line.append(
                    (list(attributes.items()), event.payload, event.kind.name, encoded, item.tolerated)
                )
            else:
                line.append((type(item.error).__name__, str(item.error), getattr(item.error, "problems", ())))
        print(repr(line).replace("\n", " "))


def outcomes(checkout: Path, count: int, seed: int) -> subprocess.Popen[str]:
    """Start a process that writes the outcomes of a checkout."""
    return subprocess.Popen(
        [sys.executable, __file__, "--worker", "--records", str(count), "--seed", str(seed)],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
        env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONIOENCODING": "utf-8:backslashreplace"},
    )


def differences(against: Path, count: int, seed: int) -> Iterator[tuple[Parts, str, str]]:
    """Yield the records that are read differently, with both outcomes."""
    with outcomes(ROOT, count, seed) as own, outcomes(against, count, seed) as other:
        assert own.stdout is not None
        assert other.stdout is not None
        for record, here, there in zip(records(count, seed), own.stdout, other.stdout, strict=True):
            if here != there:
                yield record, here, there


def main() -> int:
    """Compare, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--against", type=Path, metavar="PATH", help="another checkout of this library")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="differences that are printed")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        write_outcomes(options.records, options.seed)
        return 0
    found = 0
    for (headers, value), here, there in differences(
        options.against.resolve(), options.records, options.seed
    ):
        found += 1
        if found <= options.show:
            print(
                f"headers={headers!r}, value={value!r}\n  here:  {here.rstrip()}\n  there: {there.rstrip()}"
            )
    print(f"{options.records:,} records with seed {options.seed}, {found:,} read differently")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
