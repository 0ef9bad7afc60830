"""Numbers with their nouns, and names with their articles."""

from __future__ import annotations

import pytest

from cloudevents_kafka.primitives.plural import pluralize, with_article
from tests.support.cases import each


@each(
    ("number", "nouns", "text"),
    [
        (0, ("record",), "0 records"),
        (1, ("record",), "1 record"),
        (2000, ("record",), "2,000 records"),
        (1, ("batch", "batches"), "1 batch"),
        (3, ("batch", "batches"), "3 batches"),
        (1, ("event was", "events were"), "1 event was"),
        (2, ("event was", "events were"), "2 events were"),
    ],
)
def test_pluralize(number: int, nouns: tuple[str, ...], text: str) -> None:
    """A noun is singular for 1 only; large numbers have separators."""
    assert pluralize(number, *nouns) == text


@pytest.mark.parametrize(
    ("article", "names"),
    [
        ("a", "dict bytes Trade _Trade NoneType TypeError User UserString UUID Union D"),
        ("an", "int Order _Order Event Upload Undecodable HTTPError SSLError OSError F"),
    ],
)
def test_with_article(article: str, names: str) -> None:
    """A name has the article of its first sound."""
    for name in names.split():
        assert with_article(name) == f"{article} {name}"
