"""Read event data as values of a program's own types, for ``EventConsumer(client, data_type=…)``.

A hook is a function that takes an event and returns the event's data as a Python value. `read_as` returns the
hook for a type: a pydantic model, a msgspec Struct, a dataclass, a TypedDict, or a container or union of such
types. `by_type` chooses a hook according to the event's ``type``, and `by_dataschema` chooses a check
according to the event's ``dataschema``. Any exception that a hook raises is reported as a `BrokenData` error.
The message of this error contains the text of a `DataError`, but not the texts of other exceptions, because
they may contain data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, cast, get_args, get_type_hints, overload

import msgspec

from cloudevents_kafka.attributes.media_type import media_type
from cloudevents_kafka.codecs.payload import DataKind, implied_type
from cloudevents_kafka.codecs.registry import find
from cloudevents_kafka.errors import DataError
from cloudevents_kafka.event import Event, binary_parts, has_reader
from cloudevents_kafka.primitives.callbacks import check_callbacks
from cloudevents_kafka.primitives.plural import with_article
from cloudevents_kafka.primitives.preview import message_without_data, preview

__all__ = ["by_dataschema", "by_type", "read_as"]

T = TypeVar("T")

DataHook = Callable[[Event], T]
"""A function that takes an event and returns its data as a Python value."""

MYPY: Final = False
"""True only for mypy. For a dictionary of classes, mypy infers ``object``, while Pyright infers a union."""

TypesByName = Mapping[str, type[T] | DataHook[T]]
"""A mapping from the ``type`` of an event to the Python type, or the hook, for its data."""

UntypedData = Mapping[str, Any] | UnionType | None
"""A ``data_type`` that type checkers do not accept as a type, such as ``Order | None``."""

Check = Callable[[Any], object]
"""A function that raises an exception if data is not valid; its result is ignored."""

_Convert = Callable[[Any], Any]

_MSGSPEC_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_MAX_PROBLEMS: Final = 5  # in a message
_quoted_value: Final = re.compile(r"\bvalue .+?(?= - at |$)", re.DOTALL).sub


def hook_of(data_type: Any) -> DataHook[Any]:
    """Return the hook (a function from an event to its data) for a ``data_type``.

    ``data_type`` is a Python type, a hook, or a mapping from the ``type`` of events to Python types or hooks.

    Raises `TypeError` for any other ``data_type``, and for a coroutine function.
    """
    if isinstance(data_type, Mapping):
        return by_type(data_type)
    check_callbacks(data_type=data_type)
    is_type = isinstance(data_type, type) or bool(get_args(data_type)) or data_type is Any
    return read_as(data_type) if is_type or not callable(data_type) else data_type


if not MYPY:

    @overload
    def by_type(types: TypesByName[T]) -> DataHook[T | Any]: ...


@overload  # type: ignore[misc]  # mypy sees only this one
def by_type(types: Mapping[str, Any]) -> DataHook[Any]: ...


def by_type(types: Mapping[str, Any]) -> DataHook[Any]:
    """Return a hook that reads an event's data by the Python type, or the hook, for the event's ``type``.

    If ``types`` does not contain the ``type`` of an event, the hook returns ``event.data`` unchanged. Raises
    `TypeError` in the same cases as `read_as`.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.clients.typed_data import by_type
        >>> read = by_type({"order.counted": int})
        >>> read(Event(id="1", source="/shop", type="order.counted", data=17))
        17
    """
    hooks = {name: hook_of(each) for name, each in types.items()}

    def read(event: Event) -> Any:
        hook = hooks.get(event.type)
        return event.data if hook is None else hook(event)

    return read


def by_dataschema(checks: Mapping[str, Check] | Mapping[str | None, Check]) -> DataHook[Any]:
    """Return a hook that passes an event's data to the check for the event's ``dataschema``.

    The hook decodes the data in the same way as ``event.data``. A check is a function that raises an
    exception if the data is not valid. The hook raises `DataError` for an event whose ``dataschema`` is not
    in ``checks``. For an event without a ``dataschema``, the hook calls the check ``checks[None]``. If
    ``checks`` does not contain None, the hook raises `DataError` for an event without a ``dataschema``.

    Examples:
        >>> from jsonschema import Draft202012Validator
        >>> from cloudevents_kafka import EventConsumer
        >>> from cloudevents_kafka.clients.typed_data import by_dataschema
        >>> check = Draft202012Validator({"required": ["total"]}).validate
        >>> events = EventConsumer(consumer, data_type=by_dataschema({"https://example.com/order": check}))
    """
    by_schema: Mapping[Any, Check] = checks
    for check in checks.values():
        check_callbacks(check=check)

    def read(event: Event) -> Any:
        schema = event.dataschema
        if schema not in by_schema:
            got = "no dataschema" if schema is None else preview(schema)
            raise DataError(f"dataschema must be one that the consumer has a check for, got {got}")
        data = event.data
        by_schema[schema](data)
        return data

    return read


def read_as(data_type: type[T]) -> DataHook[T]:
    """Return a hook that reads event data as a value of one Python type.

    pydantic or msgspec reads and validates JSON. Data that is not UTF-8 JSON, or that has a registered codec
    or a ``data_reader``, is decoded first and then converted. If the decoded value already has the type, the
    value is returned unchanged. Raises `TypeError` if neither pydantic nor msgspec can read values of the
    type.

    Examples:
        >>> from cloudevents_kafka import Event
        >>> from cloudevents_kafka.clients.typed_data import read_as
        >>> read = read_as(dict[str, str])
        >>> read(Event(id="1", source="/shop", type="order.placed", data={"total": "9.50"}))
        {'total': '9.50'}
    """
    from_json, from_value, errors = _converters(data_type)
    name = getattr(data_type, "__name__", str(data_type))
    is_optional = data_type in {None, NoneType} or NoneType in get_args(data_type)

    def read(event: Event) -> T:
        payload = event.payload
        if payload is None and not is_optional:
            raise DataError(f"the data must be {with_article(name)}, but the event has no data")
        try:
            if payload is not None and _is_utf8_json(event):
                return cast("T", from_json(payload))
            data = event.data
            return cast("T", data if type(data) is data_type else from_value(data))
        except errors as problem:
            raise DataError(f"the data must be {with_article(name)}: {_explain(problem)}") from problem

    return read


def read_eagerly(event: Event, hook: DataHook[T] | None) -> Event[T]:
    """Return an event with decoded data; raise `DataError` if the data cannot be decoded.

    If ``hook`` is not None, the hook decodes the data.
    """
    if hook is None:
        _ = event.data
        return event
    try:
        data = hook(event)
    except DataError:
        raise
    except Exception as error:  # a user's function
        raise DataError(f"the data does not fit: its check raised {type(error).__name__}") from error
    return event.read_with(lambda _: data)


def _is_utf8_json(event: Event) -> bool:
    """Return whether the payload is UTF-8 JSON, and neither a codec nor a ``data_reader`` decodes it."""
    if has_reader(event):
        return False
    attributes, _, kind = binary_parts(event)
    content_type = event.datacontenttype
    if not (kind is DataKind.JSON if content_type is None else media_type(content_type).is_utf8_json):
        return False
    codec = find(implied_type(content_type, kind), attributes)
    return codec is None or codec.decode is None


def _converters(data_type: Any) -> tuple[_Convert, _Convert, tuple[type[Exception], ...]]:
    """Return a function that converts JSON to a type, a function that converts a value, and their errors."""
    if _uses_pydantic(data_type):
        from pydantic import TypeAdapter, ValidationError

        adapter = TypeAdapter(data_type)
        return adapter.validate_json, adapter.validate_python, (ValidationError,)
    try:
        known = msgspec.inspect.type_info(data_type)
        decode = msgspec.json.Decoder(data_type).decode
    except (TypeError, AttributeError) as error:
        raise _refused(data_type) from error
    if isinstance(known, msgspec.inspect.CustomType):
        raise _refused(data_type)
    # msgspec skips the text of unknown fields without a check, so UTF-8 is checked first.
    return (
        lambda payload: decode(payload if payload.isascii() else payload.decode()),
        lambda value: msgspec.convert(value, data_type),
        _MSGSPEC_ERRORS,
    )


def _uses_pydantic(data_type: Any) -> bool:
    """Return whether a type, its arguments or the types of its fields include a pydantic model."""
    seen: list[Any] = []
    types = [data_type]
    while types:
        each = types.pop()
        if hasattr(each, "__pydantic_core_schema__") or type(each).__module__.startswith("pydantic"):
            return True
        if each not in seen:
            seen.append(each)
            types += get_args(each)
            with suppress(NameError, TypeError):  # a class whose annotations cannot be resolved here
                types += get_type_hints(each, include_extras=True).values() if isinstance(each, type) else ()
    return False


def _refused(data_type: Any) -> TypeError:
    got = preview(data_type)
    return TypeError(
        "data_type must be a pydantic model, a msgspec Struct, a dataclass, a TypedDict, a function of the "
        f"event, or a mapping from types of events to one of them, got {got}; for other types, pass "
        "data_reader"
    )


def _explain(error: Exception) -> str:
    """Return the message of a pydantic or msgspec error, without the data that the message quotes."""
    problems = getattr(error, "errors", None)
    if problems is None:
        text = _quoted_value("value", message_without_data(error))
    else:  # an error of pydantic
        found = problems(include_input=False, include_url=False, include_context=False)
        parts = [f"{'.'.join(map(str, each['loc'])) or '$'}: {each['msg']}" for each in found[:_MAX_PROBLEMS]]
        text = "; ".join(parts) + (f"; and {len(found) - len(parts)} more" if len(found) > len(parts) else "")
    return text if text.isprintable() else preview(text, len(text))
