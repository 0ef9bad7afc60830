"""The event formats compared with the libraries that read and write their bytes.

The libraries, orjson, fastavro and Google's protobuf, read and write without checks and
without an event. Ratios below one are therefore the cost of the checks and of the event.
"and checked" constructs an `Event` from the result of orjson.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import fastavro
import orjson
from _timing import row, time_by_turns
from converters import construct

from cloudevents_kafka import Event
from cloudevents_kafka.event import raw_parts
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.avro import SCHEMA
from cloudevents_kafka.formats.protobuf_schema import CloudEvent

Pair = tuple[str, Callable[[], object], Callable[[], object]]
_AVRO = fastavro.parse_schema(SCHEMA)
_ITEM = {"name": "item", "price": 1.25, "tags": ["a", "b"], "note": None, "ok": True}


def json_pairs(size: str, event: Event) -> list[Pair]:
    """Return the functions for JSON."""
    form = formats.find("json")
    assert form is not None
    decode, encode = form.decode, form.encode
    value = encode(event)
    members = orjson.loads(value)
    return [
        (f"JSON read{size}", lambda: decode(value), lambda: orjson.loads(value)),
        (f"JSON read, its data too{size}", lambda: decode(value).data, lambda: orjson.loads(value)),
        (f"JSON read and checked{size}", lambda: decode(value).data, lambda: _from_orjson(value).data),
        (f"JSON written{size}", lambda: encode(event), lambda: orjson.dumps(members)),
    ]


def _from_orjson(value: bytes) -> Event:
    members: dict[str, Any] = orjson.loads(value)
    return Event(data=members.pop("data", None), **members)


def avro_pairs() -> list[Pair]:
    """Return the functions for Avro datums of the official schema."""
    form = formats.find("avro")
    assert form is not None
    event = construct()
    value = form.encode(event)
    datum = {"attribute": raw_parts(event)[0], "data": event.payload}
    return [
        ("Avro read", lambda: form.decode(value), lambda: _read_avro(value)),
        ("Avro written", lambda: form.encode(event), lambda: _write_avro(datum)),
    ]


def _read_avro(value: bytes) -> object:
    return fastavro.schemaless_reader(io.BytesIO(value), _AVRO, None)


def _write_avro(datum: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _AVRO, datum)
    return out.getvalue()


def protobuf_pairs() -> list[Pair]:
    """Return the functions for Protobuf messages; reading one accesses all attributes."""
    form = formats.find("protobuf")
    assert form is not None
    event = construct()
    value = form.encode(event)
    attributes, text = dict(raw_parts(event)[0]), (event.payload or b"").decode()
    return [
        ("Protobuf read", lambda: form.decode(value), lambda: _read_protobuf(value)),
        ("Protobuf written", lambda: form.encode(event), lambda: _write_protobuf(attributes, text)),
    ]


def _read_protobuf(value: bytes) -> object:
    message = CloudEvent.FromString(value)
    values = {name: getattr(each, each.WhichOneof("attr")) for name, each in message.attributes.items()}
    return message.id, message.source, message.spec_version, message.type, values, message.text_data


def _write_protobuf(attributes: dict[str, Any], text: str) -> object:
    message = CloudEvent(
        id=attributes["id"],
        source=attributes["source"],
        spec_version=attributes["specversion"],
        type=attributes["type"],
        text_data=text,
    )
    for name in ("subject", "traceparent", "partitionkey", "datacontenttype"):
        message.attributes[name].ce_string = attributes[name]
    message.attributes["time"].ce_timestamp.seconds = 1522949460
    return message.SerializeToString()


def main() -> None:
    """Print a row for each format and direction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("orjson", "fastavro", "protobuf"))
    print(f"{versions}, Python {sys.version.split()[0]}; medians of {options.rounds} rounds")
    print(f"{'':<44} {'ours':>11} {'library':>11} {'ratio':>7}")
    everyday, large = (
        json_pairs("", construct()),
        json_pairs(", 7 KB of data", construct().replace(data=[_ITEM] * 100)),
    )
    for name, ours, theirs in [*everyday, *large, *avro_pairs(), *protobuf_pairs()]:
        timings = time_by_turns(ours, theirs, rounds=options.rounds, calls=options.calls)
        print(row(name, *timings, None), flush=True)


if __name__ == "__main__":
    main()
