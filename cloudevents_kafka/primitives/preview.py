"""Shows values, names and exceptions in error messages: shortened and without data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cloudevents_kafka.primitives.plural import with_article

_MAX_NAME: Final = 60


def preview(value: object, limit: int = 60) -> str:
    """Return a value as text for an error message: its `repr`, cut to `limit` characters.

    For a container or a large integer, the text states only its size, because its `repr` may be very long.
    """
    if isinstance(value, dict | list):
        return f"{with_article(type(value).__name__)} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    text = repr(value[: limit + 1] if isinstance(value, str | bytes) else value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def preview_name(name: str | None) -> str:
    r"""Return a name without quotes, or its `preview` if it is long or contains unprintable characters."""
    name = str(name)
    return name if len(name) <= _MAX_NAME and name.isprintable() else preview(name, _MAX_NAME)


def text_by(to_text: Callable[[object], str], error: BaseException) -> str:
    """Return the `repr` or `str` of a user's error; if this call fails, name the exception that it raised.

    A user's error may contain an object that cannot be converted to a text, such as a row whose session has
    ended.
    """
    try:
        return to_text(error)
    except Exception as failure:  # noqa: BLE001  # a user's class may raise any error
        kind = with_article(type(error).__name__)
        return f"<{kind} whose {to_text.__name__}() raises {type(failure).__name__}>"


def message_without_data(error: Exception) -> str:
    r"""Return the message of a codec's error without the byte or character of data that it quotes."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} cannot be decoded ({error.reason})"
    if isinstance(error, UnicodeEncodeError):
        return f"character {error.start} cannot be encoded ({error.reason})"
    return str(error)
