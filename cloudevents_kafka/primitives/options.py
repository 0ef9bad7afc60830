"""`Option`: describes a field in a struct of options: its help, its flags and its allowed values.

Each field of such a struct has a type of the form ``Annotated[type, Option(…)]``. So the name, the type, the
default, the help, the flag and the check of an option are in one place. The function `fields_of` returns the
fields of a struct of options. From these fields, the program derives the checks of the struct, the flags of
the command line, and the options in files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

Form = Literal["value", "list", "table"]
"""The form of a field: one value, a list of values, or a table from names to texts."""


class Option(msgspec.Struct, frozen=True):
    """Describes a field for users; ``flags`` are the field's flags, by default ``--name-of-the-field``.

    ``check`` is a function that is called with the name of the field and a value other than None, and raises
    `ValueError` if the value is wrong. ``check`` must be a named function of a module. A lambda is not
    suitable, because msgspec does not find the names that a lambda in an annotation uses. ``least`` is the
    lowest number that is allowed. ``instead`` maps a value that is no longer allowed to advice, which the
    error message contains. ``parse`` is a function that converts a text in a list or a table to a value of
    the struct. If the value is the path of a file, ``path`` says whether the program "reads" or "writes" this
    file. If ``of_settings`` is True, the option does not have a flag. The entries of the option's field are
    then settings; the user sets each of these settings by its own name.
    """

    help: str = ""
    flags: str = ""
    metavar: str | None = None
    example: str = ""
    least: int | None = None
    check: Callable[[str, Any], object] | None = None
    instead: Mapping[str, str] = {}
    parse: Callable[[str], Any] = str
    path: Literal["reads", "writes"] | None = None
    of_settings: bool = False


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A field in a struct of options: its `Option`, and properties that its type annotation states.

    ``types`` are the types of the value, or of the items in its list or table. If ``choices`` is not empty,
    it contains the only allowed values.
    """

    name: str
    option: Option
    form: Form
    types: tuple[type, ...]
    choices: tuple[str, ...]
    default: Any
    required: bool
    may_be_none: bool

    @property
    def flag(self) -> str:
        """The long form of the option's flag on the command line, such as ``--topic``."""
        return self.option.flags.split()[-1] if self.option.flags else f"--{self.name.replace('_', '-')}"

    def check(self, value: Any) -> None:
        """Raise `ValueError` if a value breaks a rule that is about this field alone."""
        least, check = self.option.least, self.option.check
        if value is None:
            return
        if self.choices and value not in self.choices:
            raise ValueError(self.refusal(self.name, value, repr(value)))
        if least is not None and not least <= value < math.inf:
            unit = " seconds" if float in self.types else ""
            none = ", or None for no limit" if self.may_be_none else ""
            raise ValueError(f"{self.name} must be {least}{unit} or more{none}, got {value}")
        if check is not None:
            check(self.name, value)

    def refusal(self, name: str, value: object, shown: str) -> str:
        """Return the error message for a value that is not an allowed choice; it contains ``shown``."""
        instead = self.option.instead.get(str(value))
        words = f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        return f"{name} must be {words}, got {shown}{f'. {instead}' if instead else ''}"


@cache
def fields_of(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    """Return the fields of a struct that have an `Option`, in the order in which the struct defines them."""
    return tuple(_field(info, option) for info in msgspec.structs.fields(struct) for option in _options(info))


def check_fields(options: msgspec.Struct) -> None:
    """Raise `ValueError` if a value in a struct breaks a rule of its field."""
    for field in fields_of(type(options)):
        field.check(getattr(options, field.name))


def must_be(rule: str, holds: Callable[[Any], bool]) -> Callable[[str, Any], None]:
    """Return a check for the attribute ``check`` of an `Option`; its error says what a value must be."""

    def check(name: str, value: Any) -> None:
        if not holds(value):
            raise ValueError(f"{name} must be {rule}, got {value!r}")

    return check


def _options(info: msgspec.structs.FieldInfo) -> list[Option]:
    return [part for part in get_args(info.type) if isinstance(part, Option)]


def _field(info: msgspec.structs.FieldInfo, option: Option) -> Field:
    annotation = get_args(info.type)[0]
    is_union = get_origin(annotation) in {Union, UnionType}
    parts = [part for part in (get_args(annotation) if is_union else (annotation,)) if part is not NoneType]
    origin = get_origin(parts[0])
    form: Form = "value"
    if origin is not None and origin is not Literal:
        form = "table" if issubclass(origin, Mapping) else "list"
    choices = get_args(parts[0]) if origin is Literal else ()
    has_types = form == "value" and not choices and Any not in parts
    default = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
    return Field(
        name=info.name,
        option=option,
        form=form,
        types=tuple(parts) if has_types else (str,),
        choices=choices,
        default=None if default is msgspec.NODEFAULT else default,
        required=info.required,
        may_be_none=is_union,
    )
