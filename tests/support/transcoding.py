"""What an event keeps when it is written in one form and read again, as a model of the library.

A form is binary mode or an event format of structured mode. An event is preserved except for the
losses and refusals in `spec-conformance/transcoding.json`; this module applies them to an event, so
that tests can compare the result with that of the library. Run as a script, it writes
`spec-conformance/transcoding.md`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from cloudevents_kafka import EncodeError, Event, Record, from_record, to_record
from cloudevents_kafka.attributes.extension_types import parse_value, type_of
from cloudevents_kafka.attributes.media_type import media_type, python_codec
from cloudevents_kafka.attributes.timestamps import from_epoch, to_epoch
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue, canonical_text
from cloudevents_kafka.codecs.json import decode_json, encode_json
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import raw_parts, unchecked_event
from cloudevents_kafka.formats import registry as formats
from cloudevents_kafka.formats.avro import MAX_DEPTH

FOLDER: Final = Path(__file__).parents[2] / "spec-conformance"
SOURCE, TABLE = FOLDER / "transcoding.json", FOLDER / "transcoding.md"


class State(NamedTuple):
    """The state of an event: attributes with their types, the payload and its kind."""

    attributes: dict[str, AttributeValue]
    payload: bytes | None
    kind: DataKind

    @property
    def content_type(self) -> Any:
        return self.attributes.get("datacontenttype")


def state_of(event: Event) -> State:
    return State(dict(raw_parts(event)[0]), event.payload, event.kind)


def load() -> dict[str, Any]:
    """Return the data of `transcoding.json`."""
    found: dict[str, Any] = json.loads(SOURCE.read_text("utf-8"))
    return found


def forms() -> list[str]:
    """Return all forms: binary mode and the registered event formats."""
    return ["binary", *formats.names()]


def write(event: Event, form: str) -> Record:
    """Write an event in a form; raises `EncodeError`."""
    return to_record(event) if form == "binary" else to_record(event, mode="structured", format=form)


# --- losses ----------------------------------------------------------------------------


def _extensions_become_text(*types: type) -> Callable[[State], State]:
    def change(state: State) -> State:
        texts = {
            n: parse_value(n, canonical_text(v)) for n, v in state.attributes.items() if type(v) in types
        }
        return state._replace(attributes={**state.attributes, **texts})

    return change


def _json_content_type(state: State) -> State:
    if state.kind is not DataKind.JSON or state.content_type is not None:
        return state
    return state._replace(attributes={**state.attributes, "datacontenttype": "application/json"})


def _data_becomes_bytes(state: State) -> State:
    return state._replace(kind=DataKind.BYTES)


def _typed_data_becomes_bytes(state: State) -> State:
    return state if state.content_type is None else _data_becomes_bytes(state)


def _protobuf_becomes_bytes(state: State) -> State:
    return _data_becomes_bytes(state) if state.kind is DataKind.PROTO else state


def _other_json_content_type(state: State) -> State:
    payload = state.payload or b""
    bare = state.kind is DataKind.JSON and payload.startswith(b'"')
    if not bare or state.content_type is not None:
        return _json_content_type(state)
    value = json.loads(payload)
    is_string = not _has_lone_surrogate(value) and encode_json(value) == payload
    return state if is_string else _json_content_type(state)


def _times(state: State) -> dict[str, str]:
    """Return the texts of the attributes of type Timestamp."""
    return {n: str(v) for n, v in state.attributes.items() if type_of(n) is AttributeType.TIMESTAMP}


def _time_in_utc(state: State) -> State:
    utc = {name: from_epoch(*to_epoch(text)) for name, text in _times(state).items()}
    return state._replace(attributes={**state.attributes, **utc})


def _bytes_become_json(state: State) -> State:
    return state if _as_json(state) is None else state._replace(kind=DataKind.JSON)


def _outer_whitespace(state: State) -> State:
    text = _as_json(state)
    if text is None or state.payload is None:
        return state
    bare = text.strip(" \t\n\r")
    return state if bare == text else state._replace(payload=bare.encode(_charset(state)))


def _json_rewritten(state: State) -> State:
    if state.kind is not DataKind.JSON or state.content_type is not None:
        return state
    return state._replace(payload=encode_json(_with_integers(decode_json(state.payload or b""))))


def _with_integers(value: Any) -> Any:
    """Return a JSON value with an integer for each whole double."""
    if isinstance(value, dict):
        return {name: _with_integers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_with_integers(one) for one in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    return int(value) if is_whole else value


def _as_json(state: State) -> str | None:
    """Return the text of data that is JSON by its kind, or by its content type and content, or None."""
    if state.payload is None or state.kind is DataKind.TEXT:
        return None
    if state.content_type is None:
        return state.payload.decode() if state.kind is DataKind.JSON else None
    if not media_type(state.content_type).is_json:
        return None
    with suppress(ValueError, LookupError), deep_recursion():
        text = state.payload.decode(_charset(state))
        text.encode()
        json.loads(text, parse_constant=_refuse)
        return text if text.encode(_charset(state)) == state.payload else None
    return None


@contextmanager
def deep_recursion(levels: int = 20_000) -> Iterator[None]:
    """Raise the recursion limit, for deeply nested JSON that is valid all the same."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(levels)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _refuse(_: str) -> Any:
    raise ValueError("not JSON")


def _charset(state: State) -> str:
    media = media_type(state.content_type or "text/plain")
    return "utf-8" if media.utf8 else python_codec(media)


CHANGES: Final[dict[str, Callable[[State], State]]] = {
    "extensions-become-text": _extensions_become_text(bool, int, bytes),
    "binary-becomes-text": _extensions_become_text(bytes),
    "json-content-type": _json_content_type,
    "data-becomes-bytes": _data_becomes_bytes,
    "typed-data-becomes-bytes": _typed_data_becomes_bytes,
    "protobuf-becomes-bytes": _protobuf_becomes_bytes,
    "other-json-content-type": _other_json_content_type,
    "time-in-utc": _time_in_utc,
    "bytes-become-json": _bytes_become_json,
    "outer-whitespace": _outer_whitespace,
    "json-rewritten": _json_rewritten,
}


# --- refusals --------------------------------------------------------------------------


def _is_structured_content_type(state: State) -> bool:
    return state.content_type is not None and media_type(state.content_type).cloudevents


def _bare_json(state: State) -> Any:
    """Return the JSON value of data without a content type, else ""; long integers are infinite."""
    if state.kind is not DataKind.JSON or state.content_type is not None:
        return ""
    return json.loads(state.payload or b"", parse_int=lambda text: int(text) if len(text) < 99 else math.inf)


def _avro_misfit(value: Any, place: str = "data", depth: int = 0) -> str | None:
    """Return why a JSON value does not fit the unions of Avro's schema, or None."""
    if depth > MAX_DEPTH:
        return "deep"
    if not isinstance(value, dict | list):
        return "shape" if place == "object" else None
    if isinstance(value, list) and place in ("member", "object"):
        return "shape"
    inner, within = ("object", value) if isinstance(value, list) else (_INNER_PLACE[place], value.values())
    deeper = depth + (place in ("member", "object"))
    return next(filter(None, (_avro_misfit(one, inner, deeper) for one in within)), None)


_INNER_PLACE: Final = {"data": "member", "member": "inner", "object": "inner", "inner": "object"}


def _leaves(value: Any) -> Iterator[Any]:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            stack += one.values()
        elif isinstance(one, list):
            stack += one
        else:
            yield one


def _is_large(number: Any) -> bool:
    return isinstance(number, int | float) and (
        not math.isfinite(number) or (isinstance(number, int) and abs(number) > 2**53)
    )


def _has_lone_surrogate(value: Any) -> bool:
    return isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value)


def _texts(value: Any) -> Iterator[Any]:
    """Yield all texts of a JSON value, including names of members."""
    stack = [value]
    while stack:
        one = stack.pop()
        stack += [*one, *one.values()] if isinstance(one, dict) else one if isinstance(one, list) else []
        if isinstance(one, str):
            yield one


def _is_deep(state: State) -> bool:
    try:
        return _avro_misfit(_bare_json(state)) == "deep"
    except RecursionError:
        return True


def _unless_deep(refuses: Callable[[Any], bool]) -> Callable[[State], bool]:
    def refuses_state(state: State) -> bool:
        try:
            return refuses(_bare_json(state))
        except RecursionError:
            return False

    return refuses_state


def _finer_than(unit: int) -> Callable[[State], bool]:
    """Return a check for times that are finer than a unit in nanoseconds."""

    def refuses_state(state: State) -> bool:
        try:
            return any(to_epoch(text)[1] % unit for text in _times(state).values())
        except ValueError:
            return True

    return refuses_state


REFUSALS: Final[dict[str, Callable[[State], bool]]] = {
    "structured-content-type": _is_structured_content_type,
    "json-null": _unless_deep(lambda value: value is None),
    "json-shape": _unless_deep(lambda value: _avro_misfit(value) == "shape"),
    "json-nesting": _is_deep,
    "large-numbers": _unless_deep(lambda value: any(map(_is_large, _leaves(value)))),
    "lone-surrogates": _unless_deep(lambda value: any(map(_has_lone_surrogate, _texts(value)))),
    "time-beyond-nanoseconds": _finer_than(1),
    "time-beyond-microseconds": _finer_than(1000),
    "read-only": lambda _: True,
}


# --- the model -------------------------------------------------------------------------


def _ids_by_form(kind: str) -> dict[str, list[str]]:
    table = load()
    return {form: [one["id"] for one in table[kind] if form in one["forms"]] for form in table["forms"]}


_LOSSES: Final = _ids_by_form("losses")
_REFUSED: Final = _ids_by_form("refusals")


def expected_after(event: Event, form: str) -> State | None:
    """Return the expected state of an event after a form, or None if the form refuses it."""
    state = state_of(event)
    _, encoded = raw_parts(event)
    if encoded is not None and encoded[0] == form:
        return state
    if any(REFUSALS[name](state) for name in _REFUSED[form]):
        return None
    for name in _LOSSES[form]:
        state = CHANGES[name](state)
    return state


def check_form(event: Event, form: str) -> Event | None:
    """Return an event written in a form and read again, after comparing it with the model."""
    expected = expected_after(event, form)
    try:
        record = write(event, form)
    except EncodeError:
        assert expected is None, f"{form} refuses an event that the model accepts"
        return None
    assert expected is not None, f"{form} accepts an event that the model refuses"
    again = from_record(record)
    assert comparable(state_of(again)) == comparable(expected), form
    return again


def check_forms(event: Event) -> None:
    """Check an event in every form and in every pair of forms."""
    for form in forms():
        again = check_form(event, form)
        for second in forms() if again is not None else ():
            assert again is not None
            check_form(again, second)


def comparable(state: State) -> tuple[Any, ...]:
    """Return a state with the types of attributes, so that True differs from 1."""
    typed_attributes = {name: (type(value), value) for name, value in state.attributes.items()}
    return typed_attributes, state.payload, state.kind


# --- the notation of the data, and the page --------------------------------------------


def as_event(notation: dict[str, Any]) -> Event:
    """Return an event of the data, which has its payload and kind."""
    attributes = {
        n: bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for n, v in notation["attributes"].items()
    }
    payload = notation["payload"]
    if isinstance(payload, dict):
        payload = payload["text"].encode()
    elif payload is not None:
        payload = bytes.fromhex(payload)
    return unchecked_event(attributes, payload, DataKind(notation["kind"]))


def markdown(table: dict[str, Any]) -> str:
    """Return the page in Markdown."""
    return "\n".join([*_head(table), *_aspects(table), *_exceptions(table)])


def _head(table: dict[str, Any]) -> Iterator[str]:
    yield "# What an event keeps in each mode and format\n"
    yield f"{table['about']} `transcoding.json` contains an example of each row.\n"
    yield "`python -m tests.support.transcoding` writes this page from `transcoding.json`.\n"


def _aspects(table: dict[str, Any]) -> Iterator[str]:
    yield "| | " + " | ".join(table["forms"].values()) + " |"
    yield "|---" * (len(table["forms"]) + 1) + "|"
    for aspect in table["aspects"]:
        cells = (", ".join(_lost(table, aspect["id"], form)) or "kept" for form in table["forms"])
        yield f"| {aspect['says']} | {' | '.join(cells)} |"
    yield ""


def _lost(table: dict[str, Any], aspect: str, form: str) -> list[str]:
    found = [one for one in table["losses"] if form in one["forms"] and aspect in one["aspects"]]
    found += [one for one in table["refusals"] if form in one["forms"] and "always" in one]
    return [f"[{one['id']}](#{one['id']})" for one in found]


def _exceptions(table: dict[str, Any]) -> Iterator[str]:
    for title, kind in (("What changes", "losses"), ("What is refused", "refusals")):
        yield f"## {title}\n"
        yield "| | form | description | clause |"
        yield "|---|---|---|---|"
        for one in table[kind]:
            names = ", ".join(table["forms"][form] for form in one["forms"])
            yield f'| <a id="{one["id"]}"></a>{one["id"]} | {names} | {one["says"]} | {one["clause"]} |'
        yield ""


if __name__ == "__main__":
    TABLE.write_text(markdown(load()), encoding="utf-8")
