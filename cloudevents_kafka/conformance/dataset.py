"""Where clauses and vectors are, and what stands in them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from cloudevents_kafka.attributes.extension_types import register_extension
from cloudevents_kafka.attributes.types import AttributeType
from cloudevents_kafka.conformance.schema import Schema
from cloudevents_kafka.errors import CloudEventsKafkaError

Case = Mapping[str, Any]
"""A case as its file has it; see ``spec-conformance/README.md``."""

_PACKAGE: Final = Path(__file__).parents[1]
_IN_WHEEL: Final = _PACKAGE / "conformance" / "data"
_IN_CHECKOUT: Final = _PACKAGE.parent / "spec-conformance"
_OWN: Final = _IN_CHECKOUT if _IN_CHECKOUT.is_dir() else _IN_WHEEL
_CLAUSES: Final = "clauses.toml"
_VECTORS: Final = "vectors"
_SCHEMA: Final = "schema.json"
_MATRIX: Final = "decode-matrix"

Level = Literal["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "RECOMMENDED", "MAY", "derived", "advice"]
"""How much a clause asks for; see the head of ``clauses.toml``."""


class DataMissing(CloudEventsKafkaError):
    """There is no such data, or it is not what the schema of clauses and vectors says."""


class Clause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A requirement: what it asks, where it stands, and what shows that it is met.

    ``vectors`` are files below ``vectors``; ``tests`` are pytest's names of tests.
    ``one_sided`` says why no input can break it, ``open`` why nothing shows it, ``note``
    where versions of the document differ.
    """

    id: str
    area: str
    level: Level
    source: str
    about: str
    vectors: list[str] = []  # msgspec makes a new list each time
    tests: list[str] = []  # the same
    one_sided: str | None = None
    open: str | None = None
    note: str | None = None


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that clauses stand in, and the version that was read."""

    title: str
    version: str


class _Clauses(msgspec.Struct, forbid_unknown_fields=True):
    document: list[Document]
    clause: list[Clause]


class Library:
    """The clauses and vectors of one folder: by default those that came with this package."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or _OWN

    @property
    def checkout(self) -> Path | None:
        """The repository, whose tests can be run; None where there is just the data."""
        root = self.folder.parent
        return root if (root / "tests").is_dir() else None

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """All clauses, in the order of the file; raises `DataMissing`."""
        return tuple(self._list.clause)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents that the clauses stand in; raises `DataMissing`."""
        return tuple(self._list.document)

    @cached_property
    def _list(self) -> _Clauses:
        try:
            found = tomllib.loads((self.folder / _CLAUSES).read_text("utf-8"))
            return msgspec.convert(found, _Clauses)
        except (OSError, ValueError, RecursionError) as error:
            raise DataMissing(f"no clauses in {self.folder / _CLAUSES}: {error}") from None

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Names of all vector files, below ``vectors``."""
        vectors = self.folder / _VECTORS
        names = (path.relative_to(vectors).as_posix() for path in vectors.glob("**/*.json"))
        return tuple(sorted(name for name in names if name != _SCHEMA))

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of all vector files, of this or another folder."""
        return _read_object(_OWN / _VECTORS / _SCHEMA)

    def document(self, name: str) -> dict[str, Any]:
        """Read a vector file, and make the extension types known that it declares; raises `DataMissing`."""
        path = self.folder / _VECTORS / name
        found = _read_object(path)
        if wrong := next(_wrong_in(found, Schema(self.schema)), None):
            raise DataMissing(f"{path}: {wrong}")
        for extension, kind in found.get("declared", {}).items():
            try:
                register_extension(extension, AttributeType(kind))
            except ValueError as error:
                raise DataMissing(f"{path}: declared: {error}") from None
        return found

    def cases(self, name: str) -> list[Case]:
        """Return the cases of a file; those of the decode matrix get what all others have."""
        document = self.document(name)
        found = [_filled(case, name) for case in document["cases"]]
        known = {clause.id for clause in self.clauses}
        for case in found:
            if case["clause"] not in known:
                raise DataMissing(f"{name}: case {case['id']}: no clause {case['clause']} in {_CLAUSES}")
        return found

    @cached_property
    def all_cases(self) -> tuple[tuple[str, Case], ...]:
        """All cases, each with the name of its file; raises `DataMissing`."""
        if not self.files:
            raise DataMissing(f"no vectors in {self.folder / _VECTORS}: no JSON file is there")
        return tuple((name, case) for name in self.files for case in self.cases(name))


def _read_object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
        json.dumps(found, ensure_ascii=False).encode()  # no lone surrogates
    except (OSError, ValueError, RecursionError) as error:
        raise DataMissing(f"no vectors in {path}: {error}") from None
    if not isinstance(found, dict):
        raise DataMissing(f"no vectors in {path}: it must be an object")
    return found


def _wrong_in(document: dict[str, Any], schema: Schema) -> Iterator[str]:
    """Tell what is wrong with a vector file, each case held against the shape of its kind alone."""
    yield from schema.errors({**document, "cases": []})
    cases = document.get("cases")
    if not isinstance(cases, list):
        yield "cases: must be an array"
        return
    shapes = _shapes(schema)
    for number, case in enumerate(cases, 1):
        kind = case.get("kind") if isinstance(case, dict) else None
        name = case.get("id", case.get("name")) if isinstance(case, dict) else None
        named = f"case {name or number}"
        if kind is None and "clauses" in document:
            yield from (f"{named}: {wrong}" for wrong in schema.errors_of("matrixCase", case))
        elif not isinstance(kind, str) or kind not in shapes:
            yield f"{named}: no kind of case is {kind!r}; there are {', '.join(sorted(shapes))}"
        else:
            yield from (f"{named}: {wrong}" for wrong in schema.errors_of(shapes[kind], case))


def _shapes(schema: Schema) -> dict[str, str]:
    """Name the shape of each kind of case."""
    kinds = ((name, shape.get("properties", {}).get("kind", {})) for name, shape in schema.shapes.items())
    return {kind["const"]: name for name, kind in kinds if "const" in kind}


def _filled(case: Case, file: str) -> Case:
    if "id" in case:
        return case
    return {**case, "id": f"{_MATRIX}/{case['name']}", "source": file, "kind": "decode"}
