"""What a command line's words may be: seconds, files, bytes, headers, and text, which is UTF-8.

The system gives arguments as bytes. Python keeps those that are no UTF-8 as lone
surrogates, which neither JSON nor a client takes. So each word is one of

- text, which must be UTF-8: all that is declared as nothing else (`hold_texts`);
- the name of a file, which may be any bytes (`FILE`);
- a key, a value or a header's value, which may be any bytes, and become them (`BYTES`, `Header`).
"""

from __future__ import annotations

import math
from typing import Any, Final

import click

_Context = click.Context | None
_Parameter = click.Parameter | None
_NOT_UTF8: Final = "it is not UTF-8, as text must be"
# What sockets and clients count is milliseconds in 31 bits, 24 days.
_MOST_SECONDS: Final = 2_000_000


class Seconds(click.FloatRange):
    """A finite number of seconds, not below ``min``, which is 0, nor 0 unless ``none`` may pass."""

    def __init__(self, *, none: bool = False) -> None:
        super().__init__(min=0, max=_MOST_SECONDS, min_open=not none)

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> float:
        """Read a number; NaN is in no range, though it is not outside either."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{seconds} is no number of seconds.", param, ctx)
        return seconds


class Text(click.types.StringParamType):
    """Text; a usage error where it is not UTF-8, which does not show it: it may hold a secret."""

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> Any:
        """Give the text itself."""
        text = super().convert(value, param, ctx)
        if not is_utf8(text):
            self.fail(_NOT_UTF8, param, ctx)
        return text


class Bytes(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """The bytes of an argument, UTF-8 or not."""

    name = "text"

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> bytes:
        """Undo what Python did to the bytes."""
        if isinstance(value, bytes):
            return value
        try:
            return str(value).encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:  # where the system gives text, of which this is none
            self.fail(_NOT_UTF8, param, ctx)


class Header(click.ParamType):  # type: ignore[type-arg]  # older clicks have no generic one
    """``name=value`` as a name and bytes; with ``valueless`` also ``name``, which has None."""

    name = "header"

    def __init__(self, *, valueless: bool = False) -> None:
        self._valueless = valueless

    def convert(self, value: Any, param: _Parameter, ctx: _Context) -> tuple[str, bytes | None]:
        """Divide them at the first equals sign."""
        if isinstance(value, tuple):
            return value
        try:
            name, held = parse_pair(value, valueless=self._valueless)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return TEXT.convert(name, param, ctx), None if held is None else BYTES.convert(held, param, ctx)


TEXT: Final = Text()
BYTES: Final = Bytes()
FILE: Final = click.Path(readable=False)  # the command tells itself what it cannot read or write


def parse_pair(text: str, *, valueless: bool = False) -> tuple[str, str | None]:
    """Parse ``name=value``, or with ``valueless`` also ``name``; raises `ValueError`."""
    name, equals, value = text.partition("=")
    if not name or not (equals or valueless):
        raise ValueError(f"{text!r} must be name=value{' or name' if valueless else ''}")
    return name, value if equals else None


def is_utf8(text: str) -> bool:
    """Tell whether a text of the system's can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def hold_texts(command: click.Command) -> None:
    """Make text of all parameters that are declared as nothing else, so that none is forgotten."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = TEXT
