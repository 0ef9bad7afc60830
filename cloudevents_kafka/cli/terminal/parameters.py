"""Types of command-line parameters: seconds, files, bytes, headers, and UTF-8 text.

The operating system passes arguments as bytes. Python decodes bytes that are not UTF-8 to lone
surrogates, which neither JSON nor a Kafka client accepts. Each parameter is therefore one of

- text, which must be UTF-8: every parameter that declares no other type (`require_utf8`);
- a file name, which may be any bytes (`FILE`);
- a key, a value or a header value, which may be any bytes and become `bytes` (`BYTES`, `HeaderType`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Context = click.Context | None
_Parameter = click.Parameter | None
_NOT_UTF8: Final = "it is not UTF-8, as text must be"
_MAX_SECONDS: Final = 2_000_000  # 23 days: clients and sockets count milliseconds in 31 bits


class SecondsType(click.FloatRange):
    """A finite number of seconds above 0, or from 0 with ``allow_zero``."""

    def __init__(self, *, allow_zero: bool = False) -> None:
        super().__init__(min=0, max=_MAX_SECONDS, min_open=not allow_zero)

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> float:
        """Return the number; a NaN passes click's range check and is refused here."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{seconds} is not a number of seconds.", param, ctx)
        return seconds


class TextType(click.types.StringParamType):
    """UTF-8 text; the error for other text does not quote it, since it may be a secret."""

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> Any:
        """Return the text."""
        text = super().convert(value, param, ctx)
        if not is_utf8(text):
            self.fail(_NOT_UTF8, param, ctx)
        return text


class BytesType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """The bytes of an argument, UTF-8 or not."""

    name = "text"

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> bytes:
        """Return the bytes of the argument."""
        if isinstance(value, bytes):
            return value
        try:
            return str(value).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # a lone surrogate that is not a byte, as on Windows
            self.fail(_NOT_UTF8, param, ctx)


class HeaderType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """A header ``name=value``; with ``allow_null`` also ``name``, whose value is null."""

    name = "header"

    def __init__(self, *, allow_null: bool = False) -> None:
        self._allow_null = allow_null

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> tuple[str, bytes | None]:
        """Return the name and the value."""
        if isinstance(value, tuple):
            return value
        try:
            name, content = parse_pair(value, allow_name=self._allow_null)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return TEXT.convert(name, param, ctx), None if content is None else BYTES.convert(content, param, ctx)


TEXT: Final = TextType()
BYTES: Final = BytesType()
FILE: Final = click.Path(readable=False)  # the commands report unreadable files in their own words


def parse_pair(text: str, *, allow_name: bool = False) -> tuple[str, str | None]:
    """Return the name and the value of ``name=value``; the value is None for a bare ``name``.

    Raises `ValueError` for other text, and for a bare name without ``allow_name``.
    """
    name, equals, value = text.partition("=")
    if not name or not (equals or allow_name):
        raise ValueError(f"{text!r} must be name=value{' or name' if allow_name else ''}")
    return name, value if equals else None


def parse_pairs(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the name and the value of each ``name=value``; a click callback."""
    try:
        return tuple(map(parse_pair, texts))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def header_option(help: str, *, allow_null: bool = True) -> Callable[[_Command], _Command]:
    """Return the decorator for the repeatable option --header, whose value is a list of headers."""
    metavar = "NAME[=VALUE]" if allow_null else "NAME=VALUE"
    type_ = HeaderType(allow_null=allow_null)
    return click.option("--header", "headers", multiple=True, type=type_, metavar=metavar, help=help)


def is_utf8(text: str) -> bool:
    """Return whether text from the operating system can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_utf8(command: click.Command) -> None:
    """Check every parameter of a command that declares no type of its own as text."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = TEXT
