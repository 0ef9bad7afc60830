"""Events keep everything in each form except for the listed losses and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from cloudevents_kafka import Decoded, EncodeError, Event, Record, decode
from cloudevents_kafka.formats.json import JsonFormat
from tests.support import strategies as make
from tests.support import transcoding
from tests.support.cases import each
from tests.support.transcoding import CHANGES, REFUSALS, as_event, check_form, forms, state_of, write

TABLE = transcoding.load()
READ_ONLY = {form for one in TABLE["refusals"] if "always" in one for form in one["forms"]}


def pairs(kind: str) -> Callable[..., Any]:
    """Return a decorator that runs a test with the entries of a kind, each in each of its forms."""
    found = [(one, form) for one in TABLE[kind] for form in one["forms"]]
    return each(("entry", "form"), found, ids=[f"{one['id']}-{form}" for one, form in found])


def clauses() -> set[str]:
    """Return the clauses that the vectors have cases for."""
    files = transcoding.FOLDER.glob("vectors/spec-rows/*.json")
    return {case["clause"] for path in files for case in json.loads(path.read_text("utf-8"))["cases"]}


def test_every_form_has_its_entries() -> None:
    """Every registered format has a column in the table."""
    assert [*TABLE["forms"]] == forms()


def test_data_and_model_have_the_same_entries() -> None:
    """The data and the model list the same losses and refusals in the same order."""
    assert [one["id"] for one in TABLE["losses"]] == [*CHANGES]
    assert [one["id"] for one in TABLE["refusals"]] == [*REFUSALS]
    named = {form for kind in ("losses", "refusals") for one in TABLE[kind] for form in one["forms"]}
    assert named <= TABLE["forms"].keys()
    assert {one["clause"] for kind in ("losses", "refusals") for one in TABLE[kind]} <= clauses()


def test_the_page_is_current() -> None:
    """`transcoding.md` is the page of `transcoding.json`."""
    assert transcoding.TABLE.read_text("utf-8") == transcoding.markdown(TABLE)


@pytest.mark.parametrize("form", forms())
@each("aspect", TABLE["aspects"], ids=lambda aspect: aspect["id"])
def test_an_aspect_is_kept_or_its_loss_is_listed(aspect: Any, form: str) -> None:
    """An aspect changes exactly in the forms whose losses name it."""
    event = as_event(aspect["event"])
    again = check_form(event, form)
    assert (again is None) == (form in READ_ONLY)
    if again is None:
        return
    is_lost = any(form in loss["forms"] and aspect["id"] in loss["aspects"] for loss in TABLE["losses"])
    assert (state_of(again) != state_of(event)) == is_lost


@pairs("losses")
def test_a_loss(entry: Any, form: str) -> None:
    """The event of the entry changes as the entry says."""
    again = check_form(as_event(entry["event"]), form)
    assert again is not None
    assert transcoding.comparable(state_of(again)) == transcoding.comparable(
        state_of(as_event(entry["back"]))
    )
    assert state_of(again) != state_of(as_event(entry["event"]))


@pairs("refusals")
def test_a_refusal(entry: Any, form: str) -> None:
    """The event of the entry is refused by its forms and accepted by all others."""
    event = as_event(entry["event"])
    with pytest.raises(EncodeError):
        write(event, form)
    for other in {*forms()} - {*entry["forms"]} - READ_ONLY:
        assert check_form(event, other) is not None


@make.examples(150)
@given(make.events())
def test_events_in_every_form_and_pair_of_forms(event: Event) -> None:
    """A generated event keeps types, payload and kind, except for the listed losses."""
    transcoding.check_forms(event)


@make.examples(150)
@given(make.hostile_records())
def test_events_that_were_read(record: Record) -> None:
    """An event that was read keeps as much as one that was constructed."""
    result = decode(record)
    if isinstance(result, Decoded):
        transcoding.check_forms(result.event)


@each("form", sorted({*forms()} - READ_ONLY))
@each(
    ("content_type", "payload"),
    [
        ("application/json; charset=utf-16", b"\xfe\xff" + "1".encode("utf-16-be")),
        ("application/json; charset=utf-7", b"+ADE-"),
        ("application/json; charset=iso-2022-jp", b'\x1b(B"x"'),
    ],
)
def test_another_encoding_of_a_text_is_kept(content_type: str, payload: bytes, form: str) -> None:
    """If a charset has two encodings of one text, the original bytes are preserved."""
    event = Event(id="1", source="/", type="t", datacontenttype=content_type, data=payload)
    again = check_form(event, form)
    assert again is not None
    assert again.payload == payload
    texts = JsonFormat(text_data=True)
    for kind in (content_type, content_type.replace("application/json", "text/plain")):
        assert texts.decode(texts.encode(event.replace(datacontenttype=kind))).payload == payload
