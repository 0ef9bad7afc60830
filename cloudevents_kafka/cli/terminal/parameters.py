"""Types of command-line parameters: seconds, files, bytes, headers, and UTF-8 text.

The operating system passes arguments as bytes. Python decodes bytes that are not UTF-8 to lone surrogates,
which neither JSON nor a Kafka client accepts. So each parameter of a command has one of the following types:

* text, which must be UTF-8; a parameter that does not declare another type is text (see `require_utf8`);
* a file name, which may be any bytes (`FILE`);
* a key, a value or a header value, which may be any bytes and becomes `bytes` (`BYTES`, `PairType`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from cloudevents_kafka.cli.terminal.errors import BadUsage

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Context = click.Context | None
_Parameter = click.Parameter | None
_NOT_UTF8: Final = "the text must be UTF-8"
_MAX_SECONDS: Final = 2_000_000  # 23 days: clients and sockets count milliseconds in 31 bits


class SecondsType(click.FloatRange):
    """A finite number of seconds, greater than 0; with ``allow_zero``, 0 is also allowed."""

    def __init__(self, *, allow_zero: bool = False) -> None:
        super().__init__(min=0, max=_MAX_SECONDS, min_open=not allow_zero)

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> float:
        """Return the number; refuse NaN, which the range check of click accepts."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{seconds} is not a number of seconds.", param, ctx)
        return seconds


class TextType(click.types.StringParamType):
    """UTF-8 text. The error for other text does not quote the text, since it may be a secret."""

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> Any:
        """Return the text."""
        text = super().convert(value, param, ctx)
        if not is_utf8(text):
            self.fail(_NOT_UTF8, param, ctx)
        return text


class BytesType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """The bytes of an argument, which need not be UTF-8."""

    name = "text"

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> bytes:
        """Return the bytes of the argument."""
        if isinstance(value, bytes):
            return value
        try:
            return str(value).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # a lone surrogate that is not a byte, as on Windows
            self.fail(_NOT_UTF8, param, ctx)


class PairType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """A pair ``name=value``; the value has a type.

    With ``allow_null``, ``name`` without ``=value`` means a null value.
    """

    name = "pair"

    def __init__(self, value_type: TextType | BytesType, *, allow_null: bool = False) -> None:
        self._value_type = value_type
        self._allow_null = allow_null

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> tuple[str, Any]:
        """Return the name and the value of the pair."""
        if isinstance(value, tuple):
            return value
        self._value_type.convert(value, param, ctx)
        name, equals, content = value.partition("=")
        if not name or not (equals or self._allow_null):
            self.fail(f"{value!r} must be name=value{' or name' if self._allow_null else ''}", param, ctx)
        name = TEXT.convert(name, param, ctx)
        return name, self._value_type.convert(content, param, ctx) if equals else None


TEXT: Final = TextType()
BYTES: Final = BytesType()
PAIR: Final = PairType(TEXT)
FILE: Final = click.Path(readable=False)  # the commands report unreadable files in their own words


def option_group(*options: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds several options to a command, in the order of the arguments."""

    def add(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def only(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:  # noqa: ARG001  # click's signature
    """Return the value of an option, or None.

    Two values are refused, because click would silently use the second.
    """
    if len(values) > 1:
        got = " and ".join(map(repr, values))
        raise BadUsage(f"{param.opts[0]} must be passed once, got {got}; run the command for each of them")
    return values[0] if values else None


listing_option: Final = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    help="Text, or JSON lines.  [default: text on a terminal, else json]",
)

output_option: Final = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text, or JSON lines.",
)


def header_option(help: str, *, allow_null: bool = True) -> Callable[[_Command], _Command]:
    """Return the decorator for the repeatable option --header, whose value is a list of headers."""
    metavar = "NAME[=VALUE]" if allow_null else "NAME=VALUE"
    type_ = PairType(BYTES, allow_null=allow_null)
    return click.option("--header", "headers", multiple=True, type=type_, metavar=metavar, help=help)


def is_utf8(text: str) -> bool:
    """Return whether text from the operating system can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_utf8(command: click.Command) -> None:
    """Make all text parameters of a command refuse text that is not UTF-8.

    Parameters that are not text do not change.
    """
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = TEXT
