"""The options for schemas of events' data, in pipelines and in replays: their types, help texts and flags."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cloudevents_kafka.primitives.options import Option

Schemas = Annotated[
    Mapping[str, Any],
    Option(
        "The schema of the data of the types that match: JSON Schema, Avro or DDL, such as "
        "'com.example.order.*=order.json'.",
        flags="--schema",
        metavar="TYPES=FILE",
        example="com.example.order.*=order.json",
        parse=Path,
        path="reads",
    ),
]
Rescue = Annotated[bool, Option("Land data with members that do not fit; value._rescued contains them.")]
SchemaRegistry = Annotated[
    Any,
    Option(
        "Read data that serializers of this registry have framed; -X schema.registry.NAME=VALUE sets "
        "other settings of the registry's client.",
        metavar="URL",
    ),
]
