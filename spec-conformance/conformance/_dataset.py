"""The folder of clauses and vectors, and the decoding of its files."""

from __future__ import annotations

import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from cloudevents_kafka.attributes.extension_types import register_extension
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.errors import CloudEventsKafkaError
from conformance import _entry_cases, _extension_cases, _reading_cases, _writing_cases  # noqa: F401  # add kinds
from conformance._case import KINDS, Case
from conformance.notation import convert

_FOLDER: Final = Path(__file__).parents[1]
_CLAUSES: Final = "clauses.toml"
_VECTORS: Final = "vectors"
_SCHEMA: Final = "schema.json"

Level = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "derived", "advice"]
"""The level of a requirement; see the head of ``clauses.toml``."""


class DatasetError(CloudEventsKafkaError):
    """Clauses or vectors are missing, or have another shape than the README of ``spec-conformance`` says."""


class Clause(Struct, frozen=True, forbid_unknown_fields=True):
    """A requirement: its text, its source, and the cases and tests that show that it is met.

    ``vectors`` are files below ``vectors``; ``tests`` are names of tests as pytest writes
    them. ``one_sided`` says why no input can break it, ``open`` why nothing shows it,
    ``note`` where versions of the document differ.
    """

    id: str
    area: str
    level: Level
    source: str
    about: str
    vectors: list[str] = []
    tests: list[str] = []
    one_sided: str | None = None
    open: str | None = None
    note: str | None = None


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """A document that contains clauses, and its version."""

    title: str
    version: str


class _ClauseFile(Struct, forbid_unknown_fields=True):
    document: list[Document]
    clause: list[Clause]


class VectorFile(Struct, forbid_unknown_fields=True):
    """A vector file whose cases are JSON values."""

    about: str
    cases: list[Any]
    clauses: list[str] | None = None
    declared: dict[str, AttributeType] = {}


def as_case(value: Any, *, file: str, number: int = 1) -> Case:
    """Return the case of a JSON value in a vector file.

    A row of the decode matrix is a case of kind decode with a name and a number for an id. Raises
    `ValueError`, which names the case, by its ``number`` if it has no id, if a member is wrong.
    """
    if isinstance(value, dict) and "name" in value and "kind" not in value:
        row = {member: value[member] for member in value if member not in {"name", "row"}}
        value = {"id": f"decode-matrix/{value['name']}", "source": file, "kind": "decode"} | row
    try:
        return convert(value, _type_of(value))
    except ValueError as error:
        name = value.get("id", number) if isinstance(value, dict) else number
        raise ValueError(f"case {name}: {error}") from None


def _type_of(value: Any) -> type[Case]:
    if not isinstance(value, dict):
        return Case
    kind = value.get("kind")
    if kind not in [*KINDS]:  # which may be unhashable
        raise ValueError(f"kind must be one of {', '.join(sorted(KINDS))}, got {kind!r:.60}")
    return KINDS[kind]


class Dataset:
    """The clauses and vectors of a folder, by default those of ``spec-conformance``.

    Attributes and methods raise `DatasetError` if a file is missing or has another shape.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _FOLDER

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """All clauses, in the order of the file."""
        return tuple(self._clause_file.clause)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents that contain the clauses."""
        return tuple(self._clause_file.document)

    @cached_property
    def _clause_file(self) -> _ClauseFile:
        path = self.folder / _CLAUSES
        try:
            return msgspec.convert(tomllib.loads(path.read_text("utf-8")), _ClauseFile)
        except (OSError, ValueError, RecursionError) as error:
            raise DatasetError(f"{path} must contain clauses: {error}") from None

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The names of all vector files, below ``vectors``."""
        vectors = self.folder / _VECTORS
        names = (path.relative_to(vectors).as_posix() for path in vectors.glob("**/*.json"))
        return tuple(sorted(name for name in names if name != _SCHEMA))

    def file(self, name: str) -> VectorFile:
        """Return a vector file after registering the extension types that it declares."""
        path = self.folder / _VECTORS / name
        try:
            file = msgspec.json.decode(path.read_bytes(), type=VectorFile)
        except (OSError, ValueError, RecursionError) as error:
            raise DatasetError(f"{path} must contain vectors: {error}") from None
        for extension, kind in file.declared.items():
            try:
                register_extension(extension, kind)
            except ValueError as error:
                raise DatasetError(f"{path}: declared: {error}") from None
        return file

    def cases(self, name: str) -> list[Case]:
        """Return the cases of a vector file."""
        ids = {clause.id for clause in self.clauses}
        try:
            cases = [as_case(value, file=name, number=n) for n, value in enumerate(self.file(name).cases, 1)]
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"{self.folder / _VECTORS / name}: {error}") from None
        for case in cases:
            if case.clause not in ids:
                raise DatasetError(f"{name}: case {case.id}: clause {case.clause} is not in {_CLAUSES}")
        return cases

    @cached_property
    def all_cases(self) -> tuple[tuple[str, Case], ...]:
        """All cases, each with the name of its file."""
        if not self.files:
            raise DatasetError(f"{self.folder / _VECTORS} must contain JSON files with cases, got none")
        return tuple((name, case) for name in self.files for case in self.cases(name))
