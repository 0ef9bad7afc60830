"""From form to form: what an event keeps is a law, and what it does not is listed and shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
import strategies as make
import transcoding
from hypothesis import given
from transcoding import CHANGES, REFUSALS, as_event, forms, state_of, through, write

from cloudevents_kafka import Decoded, EncodeError, Event, Record, decode
from cloudevents_kafka.formats.json import JsonFormat

TABLE = transcoding.load()
READ_ONLY = {form for one in TABLE["refusals"] if "always" in one for form in one["forms"]}


def pairs(kind: str) -> pytest.MarkDecorator:
    """Parametrize with the entries of a kind, each in each of its forms."""
    found = [(one, form) for one in TABLE[kind] for form in one["forms"]]
    return pytest.mark.parametrize(
        ("entry", "form"), found, ids=[f"{one['id']}-{form}" for one, form in found]
    )


def clauses() -> set[str]:
    """Return the clauses that the vectors have cases for."""
    files = transcoding.FOLDER.glob("vectors/spec-rows/*.json")
    return {case["clause"] for path in files for case in json.loads(path.read_text("utf-8"))["cases"]}


def test_every_form_has_its_entries() -> None:
    """A format that is registered says what it keeps: it is a form of the table, and has a column."""
    assert [*TABLE["forms"]] == forms()


def test_entries_and_their_meanings_agree() -> None:
    """Every listed loss and refusal is one that the law knows, and the other way round, in its order."""
    assert [one["id"] for one in TABLE["losses"]] == [*CHANGES]
    assert [one["id"] for one in TABLE["refusals"]] == [*REFUSALS]
    named = {form for kind in ("losses", "refusals") for one in TABLE[kind] for form in one["forms"]}
    assert named <= TABLE["forms"].keys()
    assert {one["clause"] for kind in ("losses", "refusals") for one in TABLE[kind]} <= clauses()


def test_the_page_is_made_of_the_data() -> None:
    """`transcoding.md` says what `transcoding.json` says."""
    assert transcoding.TABLE.read_text("utf-8") == transcoding.made(TABLE)


@pytest.mark.parametrize("form", forms())
@pytest.mark.parametrize("aspect", TABLE["aspects"], ids=lambda aspect: aspect["id"])
def test_an_aspect_is_kept_or_its_loss_is_listed(aspect: Any, form: str) -> None:
    """What the table calls kept comes back the same; what it calls lost does not."""
    event = as_event(aspect["event"])
    again = through(event, form)
    assert (again is None) == (form in READ_ONLY)
    if again is None:
        return
    lost = any(form in loss["forms"] and aspect["id"] in loss["aspects"] for loss in TABLE["losses"])
    assert (state_of(again) != state_of(event)) == lost


@pairs("losses")
def test_a_loss_is_as_told(entry: Any, form: str) -> None:
    """The event of the entry comes back as the entry says, and differs."""
    again = through(as_event(entry["event"]), form)
    assert again is not None
    assert transcoding.comparable(state_of(again)) == transcoding.comparable(
        state_of(as_event(entry["back"]))
    )
    assert state_of(again) != state_of(as_event(entry["event"]))


@pairs("refusals")
def test_a_refusal_is_as_told(entry: Any, form: str) -> None:
    """The event of the entry cannot be written in its forms, and in all others it can."""
    event = as_event(entry["event"])
    with pytest.raises(EncodeError):
        write(event, form)
    for other in {*forms()} - {*entry["forms"]} - READ_ONLY:
        assert through(event, other) is not None


@make.examples(150)
@given(make.events())
def test_events_come_back_from_every_form_and_pair_of_forms(event: Event) -> None:
    """An event keeps all but the listed in each form, and then in each other: types, payload, kind."""
    transcoding.hold(event)


@make.examples(150)
@given(make.hostile_records())
def test_events_of_strangers_keep_as_much(record: Record) -> None:
    """The law holds for whatever was read strictly, too."""
    result = decode(record)
    if isinstance(result, Decoded):
        transcoding.hold(result.event)


@pytest.mark.parametrize("form", sorted({*forms()} - READ_ONLY))
@pytest.mark.parametrize(
    ("content_type", "payload"),
    [
        ("application/json; charset=utf-16", b"\xfe\xff" + "1".encode("utf-16-be")),
        ("application/json; charset=utf-7", b"+ADE-"),
        ("application/json; charset=iso-2022-jp", b'\x1b(B"x"'),
    ],
)
def test_bytes_of_another_spelling_are_kept(content_type: str, payload: bytes, form: str) -> None:
    """Where a charset has two spellings of one text, the bytes that came are the ones that come back."""
    event = Event(id="1", source="/", type="t", datacontenttype=content_type, data=payload)
    again = through(event, form)
    assert again is not None
    assert again.payload == payload
    texts = JsonFormat(text_data=True)
    for kind in (content_type, content_type.replace("application/json", "text/plain")):
        assert texts.decode(texts.encode(event.replace(datacontenttype=kind))).payload == payload
