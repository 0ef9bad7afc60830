"""The options of a command that are derived from a struct: flags, help, types and defaults.

Each field with the type ``Annotated[type, Option(…)]`` defines one option (`primitives.options`). There are
two dictionaries of options by field name: for the command line, and for an options file. `struct_values`
converts such a dictionary to the values of the struct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import click
import msgspec
from click.core import ParameterSource

from cloudevents_kafka.cli.terminal.completion import Completer
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE, SecondsType, option_group
from cloudevents_kafka.primitives.options import Field, fields_of

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Decorator = Callable[[Any], Any]
_NONE: Final[Mapping[str, Any]] = {}


class _Choice(click.Choice):  # type: ignore[type-arg]  # older clicks have no generic one
    """The type of a field with choices. For a choice that was removed, the error says what to use instead."""

    def __init__(self, field: Field) -> None:
        super().__init__(field.choices)
        self._field = field

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice."""
        if value in self._field.option.instead:
            raise BadUsage(self._field.refusal(self._field.flag, value, value))
        return super().convert(value, param, ctx)


class _Switch(click.Option):
    """A flag with an opposite flag, which overrides an options file.

    The help does not show the opposite flag.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the flag and its help text."""
        record = super().get_help_record(ctx)
        return record and (", ".join(sorted(self.opts, key=len)), record[1])


def struct_options(
    struct: type[msgspec.Struct],
    *,
    after: Mapping[str, _Decorator] = _NONE,
    complete: Mapping[str, Completer] = _NONE,
    required: bool = False,
) -> Callable[[_Command], _Command]:
    """Return a decorator that adds the options that a struct defines, in the order of its fields.

    ``after`` maps the name of a field to further options, which are added after the option of the field.
    ``complete`` maps the name of a field to a function that completes the field's values in a shell. With
    ``required``, an option without a default must be passed on the command line.
    """
    options: list[_Decorator] = []
    for field in fields_of(struct):
        if not field.option.of_settings:
            must_have = required and field.required
            options.append(_click_option(field, complete.get(field.name), required=must_have))
        options += [after[field.name]] if field.name in after else []
    return option_group(*options)


def _click_option(field: Field, completer: Completer | None, *, required: bool) -> _Decorator:
    option, types = field.option, field.types
    *short, flag = option.flags.split() or [field.flag]
    if types == (bool,):
        both = f"{flag}/--no-{flag.removeprefix('--')}"
        return click.option(*short, both, field.name, cls=_Switch, default=False, help=option.help)
    more: dict[str, Any] = {"help": option.help}
    if field.form != "value":
        more = {"help": f"{option.help} Repeatable.", "multiple": True}
    elif field.default is not None:
        more |= {"default": field.default, "show_default": True}
    return click.option(
        *(*short, flag, field.name),
        type=_type(field),
        metavar=option.metavar,
        shell_complete=completer,
        required=required,
        **more,
    )


def _type(field: Field) -> click.ParamType | None:  # type: ignore[type-arg]  # the same
    if field.choices:
        return _Choice(field)
    if field.types == (int,):
        return click.IntRange(min=field.option.least)
    if field.types == (float,):
        return SecondsType(allow_zero=field.option.least == 0)
    return FILE if field.option.path and field.form == "value" else None


def passed_options(ctx: click.Context, fields: Iterable[Field]) -> dict[str, Any]:
    """Return the values that were passed on the command line, as a dictionary by field name."""
    found = [field for field in fields if ctx.get_parameter_source(field.name) is ParameterSource.COMMANDLINE]
    return {field.name: _passed(field, ctx.params[field.name]) for field in found}


def _passed(field: Field, value: Any) -> Any:
    if field.form == "table":
        return _pairs(field, value)
    return list(value) if field.form == "list" else value


def _pairs(field: Field, values: Iterable[str]) -> dict[str, str]:
    """Return a dictionary from type patterns to texts; the texts must not contain an equals sign."""
    found: dict[str, str] = {}
    for value in values:
        pattern, equals, text = value.rpartition("=")
        if not equals:
            raise BadUsage(
                f"{field.flag} must be {field.option.metavar}, such as {field.option.example}, got {value!r}"
            )
        if pattern in found:
            raise BadUsage(f"{field.flag} must have each pattern once, got {pattern!r} again")
        found[pattern] = text
    return found


def struct_values(fields: Iterable[Field], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a struct's fields; raise `ValueError` for a wrong value."""
    return {field.name: _value(field, values[field.name]) for field in fields if field.name in values}


def _value(field: Field, value: Any) -> Any:
    parse = field.option.parse
    if field.form == "list":
        return tuple(map(parse, value))
    return {name: parse(text) for name, text in value.items()} if field.form == "table" else value
