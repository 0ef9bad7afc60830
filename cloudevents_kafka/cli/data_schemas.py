"""Options of commands that read data by schemas: files by types, and the client of a schema registry."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from cloudevents_kafka.cli.terminal.parameters import option_group

REGISTRY: Final = "schema.registry."
"""The beginning of the names of settings of the client of a schema registry."""

schema_options = option_group(
    click.option(
        "--schema",
        "schemas",
        multiple=True,
        metavar="TYPES=FILE",
        help="The schema of the data of the types that match: JSON Schema, Avro or DDL, such as "
        "'com.example.order.*=order.json'. Repeatable.",
    ),
    click.option(
        "--rescue",
        is_flag=True,
        help="Land data that does not fit its schema; value._rescued has what is left.",
    ),
    click.option(
        "--schema-registry",
        metavar="URL",
        help="Read data that serializers of this registry have framed; -X schema.registry.NAME=VALUE has "
        "other settings of its client.",
    ),
)


def read_schema_options(options: dict[str, Any], settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the schemas of the options and the settings of their registry; raise `ValueError`."""
    found = by_pattern("--schema", "FILE", "order.json", options.pop("schemas"))
    registry = {
        name.removeprefix(REGISTRY): value for name, value in settings.items() if name.startswith(REGISTRY)
    }
    if url := options.pop("schema_registry"):
        registry["url"] = url
    schemas = {pattern: Path(file) for pattern, file in found.items()}
    return {"schemas": schemas, "schema_registry": registry or None}


def by_pattern(option: str, what: str, example: str, values: tuple[str, ...]) -> dict[str, str]:
    """Return tables or files by patterns of types; they have no equals sign in their names."""
    found: dict[str, str] = {}
    for value in values:
        pattern, equals, name = value.rpartition("=")
        if not equals:
            raise ValueError(
                f"{option} must be TYPES={what}, such as com.example.order.*={example}, got {value!r}"
            )
        if pattern in found:
            raise ValueError(f"{option} must have each pattern once, got {pattern!r} again")
        found[pattern] = name
    return found
