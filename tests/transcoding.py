"""What an event keeps when it is written in one form and read again: a law, and its exceptions as data.

A form is a content mode or, of structured mode, an event format. The exceptions stand in
`spec-conformance/transcoding.json`, each for its form; this module does to an event what they say,
so that the law can be held against the library: what comes back is that, and nothing else.
`spec-conformance/transcoding.md` is made from the data when this module is run.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from cloudevents_kafka import EncodeError, Event, Record, formats, from_record, to_record
from cloudevents_kafka.attributes.extension_types import parse_value, type_of
from cloudevents_kafka.attributes.media_type import media_type, python_codec
from cloudevents_kafka.attributes.timestamps import from_epoch, to_epoch
from cloudevents_kafka.attributes.types import AttributeType, AttributeValue, canonical_text
from cloudevents_kafka.codecs.json import decode_json, encode_json
from cloudevents_kafka.codecs.payload import DataKind
from cloudevents_kafka.event import raw_parts, unchecked_event
from cloudevents_kafka.formats.avro_decoder import MAX_DEPTH

FOLDER: Final = Path(__file__).parents[1] / "spec-conformance"
SOURCE, TABLE = FOLDER / "transcoding.json", FOLDER / "transcoding.md"


class State(NamedTuple):
    """All that an event is: attributes with their types, payload, and what the payload stands for."""

    attributes: dict[str, AttributeValue]
    payload: bytes | None
    kind: DataKind

    @property
    def content_type(self) -> Any:
        return self.attributes.get("datacontenttype")


def state_of(event: Event) -> State:
    return State(dict(raw_parts(event)[0]), event.payload, event.kind)


def load() -> dict[str, Any]:
    """Read the data."""
    found: dict[str, Any] = json.loads(SOURCE.read_text("utf-8"))
    return found


def forms() -> list[str]:
    """Return all forms that there are here: binary mode, and the event formats that are registered."""
    return ["binary", *formats.names()]


def write(event: Event, form: str) -> Record:
    """Write an event in a form; raises `EncodeError`."""
    return to_record(event) if form == "binary" else to_record(event, mode="structured", format=form)


# --- what each exception does to an event ----------------------------------------------


def _extensions_as_text(*types: type) -> Callable[[State], State]:
    def change(state: State) -> State:
        texts = {
            n: parse_value(n, canonical_text(v)) for n, v in state.attributes.items() if type(v) in types
        }
        return state._replace(attributes={**state.attributes, **texts})

    return change


def _json_is_named(state: State) -> State:
    if state.kind is not DataKind.JSON or state.content_type is not None:
        return state
    return state._replace(attributes={**state.attributes, "datacontenttype": "application/json"})


def _data_is_bytes(state: State) -> State:
    return state._replace(kind=DataKind.BYTES)


def _typed_data_is_bytes(state: State) -> State:
    return state if state.content_type is None else _data_is_bytes(state)


def _proto_is_bytes(state: State) -> State:
    return _data_is_bytes(state) if state.kind is DataKind.PROTO else state


def _other_json_is_named(state: State) -> State:
    payload = state.payload or b""
    bare = state.kind is DataKind.JSON and payload.startswith(b'"')
    if not bare or state.content_type is not None:
        return _json_is_named(state)
    value = json.loads(payload)
    is_string = not _is_half_pair(value) and encode_json(value) == payload
    return state if is_string else _json_is_named(state)


def _times(state: State) -> dict[str, str]:
    """Return the texts of the attributes that are known to be Timestamps."""
    return {n: str(v) for n, v in state.attributes.items() if type_of(n) is AttributeType.TIMESTAMP}


def _time_is_utc(state: State) -> State:
    utc = {name: from_epoch(*to_epoch(text)) for name, text in _times(state).items()}
    return state._replace(attributes={**state.attributes, **utc})


def _json_is_seen(state: State) -> State:
    return state if _as_json(state) is None else state._replace(kind=DataKind.JSON)


def _outer_space_goes(state: State) -> State:
    text = _as_json(state)
    if text is None or state.payload is None:
        return state
    bare = text.strip(" \t\n\r")
    return state if bare == text else state._replace(payload=bare.encode(_charset(state)))


def _json_is_spelled_anew(state: State) -> State:
    if state.kind is not DataKind.JSON or state.content_type is not None:
        return state
    return state._replace(payload=encode_json(_whole(decode_json(state.payload or b""))))


def _whole(value: Any) -> Any:
    """Numbers as doubles, and a double that is whole as an integer."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    return int(value) if whole else value


def _as_json(state: State) -> str | None:
    """Return the text of data that is JSON, by its kind or by its content type and its bytes."""
    if state.payload is None or state.kind is DataKind.TEXT:
        return None
    if state.content_type is None:
        return state.payload.decode() if state.kind is DataKind.JSON else None
    if not media_type(state.content_type).is_json:
        return None
    with suppress(ValueError, LookupError), deep_recursion():
        text = state.payload.decode(_charset(state))
        text.encode()
        json.loads(text, parse_constant=_refused)
        return text if text.encode(_charset(state)) == state.payload else None
    return None


@contextmanager
def deep_recursion(levels: int = 20_000) -> Iterator[None]:
    """Let Python's own parser go as deep as the events of tests do: depth alone makes JSON no worse."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(levels)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _refused(_: str) -> Any:
    raise ValueError("no JSON")


def _charset(state: State) -> str:
    media = media_type(state.content_type or "text/plain")
    return "utf-8" if media.utf8 else python_codec(media)


CHANGES: Final[dict[str, Callable[[State], State]]] = {
    "extensions-are-texts": _extensions_as_text(bool, int, bytes),
    "binaries-are-texts": _extensions_as_text(bytes),
    "json-is-named": _json_is_named,
    "data-is-bytes": _data_is_bytes,
    "typed-data-is-bytes": _typed_data_is_bytes,
    "proto-is-bytes": _proto_is_bytes,
    "other-json-is-named": _other_json_is_named,
    "time-is-utc": _time_is_utc,
    "json-is-seen": _json_is_seen,
    "outer-space-goes": _outer_space_goes,
    "json-is-spelled-anew": _json_is_spelled_anew,
}


# --- what a form refuses ---------------------------------------------------------------


def _looks_structured(state: State) -> bool:
    return state.content_type is not None and media_type(state.content_type).cloudevents


def _untyped(state: State) -> Any:
    """Return the JSON value that has no content type, else a text; long numbers are infinite."""
    if state.kind is not DataKind.JSON or state.content_type is not None:
        return ""
    return json.loads(state.payload or b"", parse_int=lambda text: int(text) if len(text) < 99 else math.inf)


def _misfit(value: Any, place: str = "data", depth: int = 0) -> str | None:
    """Tell what of a JSON value the unions of Avro's schema have no place for, by place."""
    if depth > MAX_DEPTH:
        return "deep"
    if not isinstance(value, dict | list):
        return "shape" if place == "object" else None
    if isinstance(value, list) and place in ("member", "object"):
        return "shape"
    inner, within = ("object", value) if isinstance(value, list) else (_INNER[place], value.values())
    deeper = depth + (place in ("member", "object"))
    return next(filter(None, (_misfit(one, inner, deeper) for one in within)), None)


_INNER: Final = {"data": "member", "member": "inner", "object": "inner", "inner": "object"}


def _leaves(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        else:
            yield one


def _is_great(number: Any) -> bool:
    return isinstance(number, int | float) and (
        not math.isfinite(number) or (isinstance(number, int) and abs(number) > 2**53)
    )


def _is_half_pair(value: Any) -> bool:
    return isinstance(value, str) and any("\ud800" <= sign <= "\udfff" for sign in value)


def _texts(value: Any) -> Iterator[Any]:
    """Return all texts of a JSON value, names of members too."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        waiting += [*one, *one.values()] if isinstance(one, dict) else one if isinstance(one, list) else []
        if isinstance(one, str):
            yield one


def _is_deep(state: State) -> bool:
    try:
        return _misfit(_untyped(state)) == "deep"
    except RecursionError:
        return True


def _unless_deep(refuses: Callable[[Any], bool]) -> Callable[[State], bool]:
    def judge(state: State) -> bool:
        try:
            return refuses(_untyped(state))
        except RecursionError:
            return False

    return judge


def _finer_than(unit: int) -> Callable[[State], bool]:
    """Tell of a time that a count of so many nanoseconds cannot name."""

    def judge(state: State) -> bool:
        try:
            return any(to_epoch(text)[1] % unit for text in _times(state).values())
        except ValueError:
            return True

    return judge


REFUSALS: Final[dict[str, Callable[[State], bool]]] = {
    "looks-structured": _looks_structured,
    "json-null": _unless_deep(lambda value: value is None),
    "shape": _unless_deep(lambda value: _misfit(value) == "shape"),
    "nesting": _is_deep,
    "great-numbers": _unless_deep(lambda value: any(map(_is_great, _leaves(value)))),
    "half-pairs": _unless_deep(lambda value: any(map(_is_half_pair, _texts(value)))),
    "times-in-nanoseconds": _finer_than(1),
    "times-in-microseconds": _finer_than(1000),
    "read-only": lambda _: True,
}


# --- the law -----------------------------------------------------------------------------


def _of_forms(kind: str) -> dict[str, list[str]]:
    table = load()
    return {form: [one["id"] for one in table[kind] if form in one["forms"]] for form in table["forms"]}


_LOSSES: Final = _of_forms("losses")
_REFUSED: Final = _of_forms("refusals")


def after(event: Event, form: str) -> State | None:
    """Say what comes back when an event is written in a form and read again; None where it is refused."""
    state = state_of(event)
    _, wire = raw_parts(event)
    if wire is not None and wire[0] == form:
        return state
    if any(REFUSALS[name](state) for name in _REFUSED[form]):
        return None
    for name in _LOSSES[form]:
        state = CHANGES[name](state)
    return state


def through(event: Event, form: str) -> Event | None:
    """Write an event in a form and read it again, and hold what comes back to the law."""
    expected = after(event, form)
    try:
        record = write(event, form)
    except EncodeError:
        assert expected is None, f"{form} refuses without a listed reason"
        return None
    assert expected is not None, f"{form} does not refuse"
    again = from_record(record)
    assert comparable(state_of(again)) == comparable(expected), form
    return again


def hold(event: Event) -> None:
    """Hold an event to the law, in every form and through every two of them."""
    for form in forms():
        again = through(event, form)
        for second in forms() if again is not None else ():
            assert again is not None
            through(again, second)


def comparable(state: State) -> tuple[Any, ...]:
    """Return what tells states apart, types of attributes included: True is not 1."""
    typed_attributes = {name: (type(value), value) for name, value in state.attributes.items()}
    return typed_attributes, state.payload, state.kind


# --- the data's own notation, and the page made of it -------------------------------------


def as_event(notation: dict[str, Any]) -> Event:
    """Read an event of the data, whose payload and kind are given as they are."""
    attributes = {
        n: bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for n, v in notation["attributes"].items()
    }
    payload = notation["payload"]
    if isinstance(payload, dict):
        payload = payload["text"].encode()
    elif payload is not None:
        payload = bytes.fromhex(payload)
    return unchecked_event(attributes, payload, DataKind(notation["kind"]))


def made(table: dict[str, Any]) -> str:
    """Write the data as a page of Markdown."""
    return "\n".join([*_head(table), *_aspects(table), *_exceptions(table)])


def _head(table: dict[str, Any]) -> Iterator[str]:
    yield "# What an event keeps from form to form\n"
    yield f"{table['about']} Examples of all of it, as data: `transcoding.json`.\n"
    yield "Made from `transcoding.json` by `python tests/transcoding.py`; a test compares.\n"


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
        yield "| | where | what | clause |"
        yield "|---|---|---|---|"
        for one in table[kind]:
            where = ", ".join(table["forms"][form] for form in one["forms"])
            yield f'| <a id="{one["id"]}"></a>{one["id"]} | {where} | {one["says"]} | {one["clause"]} |'
        yield ""


if __name__ == "__main__":
    TABLE.write_text(made(load()), encoding="utf-8")
