"""The package: its names, and what importing it imports."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import msgspec
import pytest

import cloudevents_kafka
from cloudevents_kafka import Record
from cloudevents_kafka.clients import aio
from tests.support.cases import each
from tests.support.jar_script import jar_script

PACKAGE = Path(cloudevents_kafka.__file__).parent

HEAVY = (
    "confluent_kafka",
    "pyspark",
    "fastavro",
    "cloudevents",
    "google.protobuf",
    "click",
    "orjson",
    "dateutil",
    "pytest",
)

CONVERT = """
from cloudevents_kafka import Event, from_record, to_record
event = Event(id="1", source="/", type="t", data={"a": 1})
from_record(to_record(event, mode="structured"))
from_record(to_record(event), lenient=True)
"""


READ = """
from cloudevents_kafka import Record, from_record
value = bytes.fromhex("0a013112022f731a03312e30220174")
from_record(Record(value=value, headers=[("content-type", b"application/cloudevents+protobuf")]))
"""


def modules_after(code: str) -> set[str]:
    """Return the imported modules after running code in a new interpreter."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout))


@each(
    "code",
    [
        "import cloudevents_kafka",
        "from cloudevents_kafka import *",
        "import cloudevents_kafka.formats.json",
        CONVERT,
    ],
)
def test_importing_is_light(code: str) -> None:
    """Importing the package imports neither a client nor Spark nor Avro."""
    assert modules_after(code).isdisjoint(HEAVY)


def test_asyncio_is_imported_when_it_is_used() -> None:
    """Importing asyncio takes half as long as the package, so only its classes import it."""
    assert "asyncio" not in modules_after("import cloudevents_kafka")
    assert "asyncio" in modules_after("from cloudevents_kafka import AsyncEventConsumer")
    assert "aiokafka" not in modules_after("import cloudevents_kafka.clients.aio")
    with pytest.raises(AttributeError, match="has no attribute 'AsyncEvents'"):
        _ = cloudevents_kafka.AsyncEvents


def test_avro_is_imported_when_it_is_used() -> None:
    """Fastavro is imported on first use, so the test above checks the right names."""
    code = CONVERT.replace('"structured"', '"structured", format="avro"')
    assert "fastavro" in modules_after(code)


def test_protobuf_is_imported_to_write() -> None:
    """The package protobuf is imported when a Protobuf event is first written; reading does not need it."""
    code = CONVERT.replace('"structured"', '"structured", format="protobuf"')
    assert "google.protobuf" in modules_after(code)
    assert "google.protobuf" not in modules_after(READ)


def test_all_is_complete_and_sorted() -> None:
    """__all__ has every public name, in order."""
    names = cloudevents_kafka.__all__
    assert names == sorted(names)
    assert len(names) == len(set(names))
    public = {
        name
        for name, value in vars(cloudevents_kafka).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("cloudevents_kafka.")
    }
    assert set(names) == public | set(aio.__all__)  # imported when they are asked for


@each("name", cloudevents_kafka.__all__)
def test_every_name_is_documented(name: str) -> None:
    """Each public name has a docstring with a short first line."""
    text = getattr(cloudevents_kafka, name).__doc__
    assert text
    assert len(text.strip().splitlines()[0]) <= 110


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, and the names that it imports from modules."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            folder = ".".join(path.relative_to(PACKAGE.parent).parts[: -node.level]) if node.level else ""
            module = ".".join(filter(None, (folder, node.module)))
            yield from (f"{module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_private_modules_are_imported_in_their_folder_only() -> None:
    """A module whose name begins with an underscore is private to its folder."""
    for path in PACKAGE.rglob("*.py"):
        place = ".".join(path.relative_to(PACKAGE.parent).parts)
        for name in imported_modules(path):
            folder, private, _ = name.partition("._")
            if private and name.startswith("cloudevents_kafka."):
                assert place.startswith(f"{folder}."), f"{place} imports {name}"


def structs() -> list[type[msgspec.Struct]]:
    """Return all structures of the package, also those of the protocol's messages."""
    missing = () if find_spec("pyspark") else ("cloudevents_kafka.spark", "cloudevents_kafka.cli.demo")
    for module in pkgutil.walk_packages(cloudevents_kafka.__path__, "cloudevents_kafka."):
        if not module.name.endswith("__main__") and not module.name.startswith(missing):
            importlib.import_module(module.name)
    waiting, found = [msgspec.Struct], []
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting += subclasses
        found += [one for one in subclasses if one.__module__.startswith("cloudevents_kafka.")]
    return found


def leaves(hint: Any) -> Iterator[Any]:
    inner = typing.get_args(hint)
    if hint is not Any and inner and typing.get_origin(hint) is not Literal:
        for one in inner:
            yield from leaves(one)
    else:
        yield hint


def test_structures_without_gc_have_no_cycles() -> None:
    """A structure with gc=False refers only to bytes, texts, numbers, and such structures."""
    hidden = {one for one in structs() if not one.__struct_config__.gc}
    assert Record in hidden
    simple = {bytes, str, int, float, bool, type(None), UUID, ..., *hidden}
    for one in hidden:
        hints = {
            name: hint for name, hint in typing.get_type_hints(one).items() if name in one.__struct_fields__
        }
        for name, hint in hints.items():
            for leaf in leaves(hint):
                assert leaf in simple or issubclass(leaf, Enum), f"{one.__qualname__}.{name}: {leaf}"


def test_the_jar_is_of_the_current_java_sources() -> None:
    """The package has one jar of the Java function, and its name has the hash of its sources."""
    jars = [path.name for path in (PACKAGE / "spark" / "java" / "jars").iterdir()]
    assert jars == [jar_script().jar_name()], "the Java sources have changed; do: make jar"


@each("module", ["attributes/_uri", "attributes/media_type", "codecs/json_grammar"])
def test_no_group_is_repeated_possessively(module: str) -> None:
    """Python 3.11.2, of Debian 12, does not go back to where the last round of such a group began."""
    source = (Path(cloudevents_kafka.__file__).parent / f"{module}.py").read_text("utf-8")
    assert not re.search(r"[^(]\)[*+?]\+", source)


def test_importing_takes_few_modules() -> None:
    """Importing takes the modules of the package and few of the standard library: less than 80 ms."""
    new = modules_after("import cloudevents_kafka") - modules_after("pass")
    own = {name for name in new if name.startswith("cloudevents_kafka")}
    assert len(own) <= 90
    assert len(new - own) <= 110


def test_no_name_of_a_package_shadows_its_module() -> None:
    """No name of a package is also the name of one of its modules."""
    without_spark = () if find_spec("pyspark") else ("cloudevents_kafka.spark", "cloudevents_kafka.cli.demo")
    for module in pkgutil.walk_packages(cloudevents_kafka.__path__, "cloudevents_kafka."):
        if not module.name.endswith("__main__") and not module.name.startswith(without_spark):
            folder, _, name = module.name.rpartition(".")
            imported = importlib.import_module(module.name)
            assert getattr(importlib.import_module(folder), name) is imported, module.name
