"""A case of a vector file, the table of its kinds, and the error of a case that fails.

A kind is a function: its parameters are the members of its cases, apart from the common ones,
and it raises `CaseFailed` unless the library does what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from os.path import commonprefix
from typing import Any, ClassVar, Final, Literal, TypeVar, get_type_hints

from msgspec import Struct, defstruct

from cloudevents_kafka.binding import ContentMode
from cloudevents_kafka.errors import CloudEventsKafkaError

Format = Literal["json", "avro", "avro-compact", "protobuf"]
MODES: Final[tuple[ContentMode, ...]] = ("binary", "structured")
MODES_AND_FORMATS: Final[tuple[tuple[ContentMode, str | None], ...]] = (
    ("binary", None),
    *(("structured", name) for name in ("json", "avro", "avro-compact", "protobuf")),
)
"""The modes and formats that preserve every event exactly."""
_EXCERPT: Final = 120  # characters of a value in a message

_Check = TypeVar("_Check", bound=Callable[..., None])


class CaseFailed(AssertionError):
    """The library does not do what a case expects; the message says what it does instead."""


class Case(Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """The members that all cases have; each kind is a subclass, whose tag is its name.

    ``spec-conformance/README.md`` says what must hold for each kind. A member that is left out
    is None, False or empty, or UNSET where null means something else. Of ``one_of`` at least
    one is set.
    """

    one_of: ClassVar[tuple[str, ...]] = ()
    id: str
    clause: str
    source: str
    about: str
    choice: bool = False
    documented: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` if members are missing."""
        if self.one_of and not any(getattr(self, name) for name in self.one_of):
            raise ValueError(f"{' or '.join(self.one_of)} is missing or empty")

    @property
    def kind(self) -> str:
        """The kind of the case, by its name in the vectors."""
        return str(self.__struct_config__.tag)

    @property
    def accepts(self) -> bool:
        """Whether the case is of something that is accepted, not of something that is refused."""
        raise NotImplementedError

    def run(self) -> None:
        """Run the case; raise `CaseFailed`, and no other error, if the library does something else."""
        try:
            self._check()
        except CloudEventsKafkaError as error:
            raise CaseFailed(f"must succeed, got {type(error).__name__}: {error}") from error
        except (LookupError, ValueError) as error:  # a value of the right type may still make no sense
            raise CaseFailed(f"the case must be valid, got {type(error).__name__}: {error}") from error

    def _check(self) -> None:
        """Raise `CaseFailed`, or an error of the library, unless it does what the case says."""
        raise NotImplementedError


KINDS: Final[dict[str, type[Case]]] = {}
"""The type of each kind of case."""


def kind(
    name: str, *, accepts: Callable[[Any], bool] = lambda _: True, one_of: tuple[str, ...] = ()
) -> Callable[[_Check], _Check]:
    """Return a decorator that adds a check to `KINDS`; ``accepts`` and ``one_of`` are those of `Case`."""

    def add(check: _Check) -> _Check:
        types, parameters = get_type_hints(check), signature(check).parameters
        members = [
            (member, types[member], *([] if of.default is Parameter.empty else [of.default]))
            for member, of in parameters.items()
        ]

        def run_check(case: Case) -> None:
            check(**{member: getattr(case, member) for member in parameters})

        namespace = {"_check": run_check, "accepts": property(accepts), "one_of": one_of}
        cls: Any = defstruct(name, members, bases=(Case,), namespace=namespace, kw_only=True, tag=name)
        KINDS[name] = cls
        return check

    return add


def require(condition: object, message: str) -> None:
    """Raise `CaseFailed` with a message unless a condition holds."""
    if not condition:
        raise CaseFailed(message)


def require_equal(found: object, expected: object, what: str) -> None:
    """Raise `CaseFailed` if two values differ."""
    if found != expected:
        raise CaseFailed(difference(found, expected, what))


def difference(found: object, expected: object, what: str) -> str:
    """Return a sentence with two values that differ; of long ones, the text around the first difference."""
    texts = [repr(expected), repr(found)]
    alike = len(commonprefix(texts))  # noqa: RUF071  # the texts are compared by character
    start = max(0, alike - _EXCERPT // 4) if max(map(len, texts)) > _EXCERPT else 0
    return f"{what} must be {_excerpt(texts[0], start)}, not {_excerpt(texts[1], start)}"


def _excerpt(text: str, start: int) -> str:
    end = start + _EXCERPT
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
