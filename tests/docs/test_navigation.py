"""The site's navigation has each page, and the reference has each public name."""

from __future__ import annotations

import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import cloudevents_kafka
from cloudevents_kafka import codecs, registry
from cloudevents_kafka.clients import aio

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_each_page_is_in_the_navigation_once() -> None:
    """Each page is an entry, each entry is a page, and no page has two."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    assert sorted(re.findall(r"[\w/-]+\.md", navigation)) == PAGES


def test_the_reference_has_objects_that_exist() -> None:
    """What a page of the reference shows is a module, or a name of one; PySpark need not be installed."""
    for name in shown():
        module, _, attribute = name.rpartition(".")
        assert find_spec(name) or hasattr(importlib.import_module(module), attribute), name


def test_the_reference_has_each_name_of_the_package_once() -> None:
    """All that `cloudevents_kafka` exports is shown, by itself or with its module."""
    names = shown()
    assert len(names) == len(set(names))
    modules = [importlib.import_module(name) for name in names if name.startswith("cloudevents_kafka.errors")]
    elsewhere = {name for module in (*modules, codecs, registry) for name in vars(module)} | set(aio.__all__)
    direct = {name.removeprefix("cloudevents_kafka.") for name in names}
    assert set(cloudevents_kafka.__all__) <= direct | elsewhere
    assert "cloudevents_kafka.clients.aio" in names


def shown() -> list[str]:
    """Return the names of the objects that the pages of the reference show."""
    text = "\n".join(page.read_text("utf-8") for page in sorted((DOCS / "reference").glob("*.md")))
    return re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
