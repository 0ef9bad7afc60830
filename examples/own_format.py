"""Register an event format, a data codec and an extension type.

python examples/own_format.py
"""

from __future__ import annotations

import json
from urllib.parse import parse_qsl, urlencode

from cloudevents_kafka import (
    AttributeType,
    Codec,
    Event,
    InvalidEvent,
    from_record,
    register_codec,
    register_extension,
    register_format,
    to_record,
)
from cloudevents_kafka.errors import EncodeError, Problem
from cloudevents_kafka.formats.json import JsonFormat


class LinesFormat:
    """A toy format: a ``name: value`` line for each attribute, then the data as JSON; no binary data."""

    name = "lines"

    def encode(self, event: Event) -> bytes:
        if event.payload is not None and not isinstance(event.data, dict):
            raise EncodeError("data must be a JSON object")
        lines = [f"{name}: {event.text(name)}" for name in event]
        return "\n".join([*lines, json.dumps(event.data)]).encode()

    def decode(self, value: bytes) -> Event:
        try:
            *lines, data = value.decode().split("\n")
            attributes = dict(line.split(": ", 1) for line in lines)
            return Event(**attributes, data=json.loads(data))
        except ValueError as error:
            if isinstance(error, InvalidEvent):
                raise
            raise InvalidEvent(
                [Problem(None, "must be lines of 'name: value'", "J-01", str(error))]
            ) from None


def main() -> None:
    register_format("lines", LinesFormat)
    register_format("json", lambda: JsonFormat(text_data=True))  # text as a JSON string instead of base64
    register_extension(
        "attempt", AttributeType.INTEGER, rule="must not be negative", accepts=lambda n: int(n) >= 0
    )
    form = "application/x-www-form-urlencoded"
    register_codec(
        form, Codec(lambda payload: dict(parse_qsl(payload.decode())), lambda d: urlencode(d).encode())
    )
    event = Event(id="1", source="/s", type="t", datacontenttype=form, data={"a": "é"}, attempt=3)
    record = to_record(event, mode="structured", format="lines")
    print(record.value.decode() if record.value else "")
    assert from_record(record) == event
    assert from_record(to_record(event))["attempt"] == 3


if __name__ == "__main__":
    main()
