"""The named sets of jars: full lists with SHA-256 checksums, in ``jar_sets.toml``.

There is one for each version of Kafka and of its old brokers, of Spark's Kafka connector, of
Delta and of Iceberg that the package offers. Their jars were compared with the checksums that
Maven Central publishes. ``tests/jvm/pin.py`` writes the file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from cloudevents_kafka.jvm._coordinates import Coordinate, JarRequest

FILE_NAME: Final = "jar_sets.toml"


class JarSet(msgspec.Struct, frozen=True):
    """A named set: the request that it answers, and the SHA-256 of each jar by coordinate."""

    request: JarRequest
    jars: Mapping[Coordinate, str]


@cache
def jar_sets() -> Mapping[str, JarSet]:
    """Return all sets by name, such as "kafka 4.3.1"."""
    text = (files("cloudevents_kafka.jvm") / FILE_NAME).read_text(encoding="utf-8")
    return {name: _jar_set(table) for name, table in tomllib.loads(text).items()}


@cache
def pinned_checksums() -> Mapping[Coordinate, str]:
    """Return the SHA-256 of each jar of any set."""
    return {jar: digest for jar_set in jar_sets().values() for jar, digest in jar_set.jars.items()}


def listed_jars(request: JarRequest) -> Mapping[Coordinate, str] | None:
    """Return the jars of the set that answers a request, or None."""
    return next((jar_set.jars for jar_set in jar_sets().values() if jar_set.request == request), None)


def _jar_set(table: Mapping[str, list[str]]) -> JarSet:
    rows = (line.split() for line in table["jars"])
    jars = {Coordinate(*text.split(":")): digest for digest, text in rows}
    return JarSet(JarRequest.create(table["coordinates"], table.get("exclude", [])), jars)
