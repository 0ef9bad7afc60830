"""What the hooks of the site and its check in a browser do, without MkDocs and without a browser."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cloudevents_kafka import __version__

SITE = Path(__file__).parents[2] / ".ci" / "site"
HOST = "https://github.com/cloudevents-kafka/cloudevents-kafka"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SITE))
    names = ("hooks", "check", "command_line", "public_names")
    loaded = SimpleNamespace(**{name: import_module(name) for name in names})
    for name in names:
        sys.modules.pop(name)
    return loaded


def page(name: str) -> SimpleNamespace:
    return SimpleNamespace(
        file=SimpleNamespace(src_uri=name), markdown="::: cloudevents_kafka.clients.aio", meta={}
    )


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[a](../../examples/emit.py)", f"[a]({HOST}/blob/main/examples/emit.py)"),
        ("[a](../../examples/)", f"[a]({HOST}/tree/main/examples)"),
        ("[a](../../spec-conformance/peers.md#go)", "[a](../proofs/peers.md#go)"),
        ("[a](../../CHANGELOG.md)", "[a](../changelog.md)"),
        ("[a](../../CONTRIBUTING.md)", f"[a]({HOST}/blob/main/CONTRIBUTING.md)"),
        ("[a](consume.md#errors)", "[a](consume.md#errors)"),
        ("[a](#here)", "[a](#here)"),
        ("[a](https://example.com/x)", "[a](https://example.com/x)"),
        ("```python spark\nx\n```", "```python\nx\n```"),
        ("```text\n[a](../../examples/)\n```", "```text\n[a](../../examples/)\n```"),
    ],
)
def test_links_out_of_the_site_lead_to_the_host(site, link, shown):
    """A file of the repository that is not a page is a link to the project's host; code is not changed."""
    assert site.hooks.on_page_markdown(link, page("how-to/produce.md")) == shown


def test_an_included_file_has_its_own_links(site):
    """Links of the changelog start at the folder of the changelog, and lead to pages of the site."""
    text = site.hooks.on_page_markdown("<!-- include: CHANGELOG.md -->", page("changelog.md"))
    assert text.startswith("# Changelog")
    assert "](licences.md)" in text


def test_drawings_are_in_the_page(site):
    """A drawing is part of the HTML, with its title, so that it follows the page's colours."""
    html = '<p><img alt="x" src="../assets/house.svg" /></p>'
    shown = site.hooks.on_page_content(html, page("how-to/produce.md"))
    assert "<svg" in shown
    assert "<title>The packages" in shown


def test_names_of_public_objects_are_links(site):
    """In the reference a public name is a link; a heading, a link and a block of code stay as they are."""
    html = "<p><code>Event.data</code> <code>nothing</code></p><pre><code>Event</code></pre>"
    shown = site.hooks.on_page_content(html, page("reference/aio.md"))
    assert 'identifier="cloudevents_kafka.Event.data" optional><code>Event.data</code></autoref>' in shown
    assert shown.count("<autoref") == 1


def test_the_site_has_the_version(site):
    """The name of the site, which each page has, ends with it."""
    config = site.hooks.on_config(SimpleNamespace(site_name="CloudEvents over Kafka"))
    assert config.site_name == f"CloudEvents over Kafka {__version__}"


def test_cells_of_tables_have_the_names_of_their_columns(site):
    """On a phone they stand under these."""
    head = "<thead><tr><th>a</th><th><code>b</code></th></tr></thead>"
    table = f"<table>{head}<tr><td>1</td><td>2</td></tr></table>"
    shown = site.hooks.on_page_content(table, page("how-to/produce.md"))
    assert "<table data-stacked>" in shown
    assert '<td data-label="a">1</td><td data-label="b">2</td>' in shown


def test_help_is_not_escaped_twice(site):
    """Bounds of a number are shown as --help prints them."""
    assert "\\<" not in site.command_line.to_markdown()
    assert site.command_line._escape("[default: 15.0; 0<x<=9]") == r"\[default: 15.0; 0&lt;x&lt;=9\]"


def test_each_command_has_a_section(site):
    """The page of the command line has all commands with their options."""
    text = site.command_line.to_markdown()
    assert "{: #cloudevents-kafka-protocol-decode }" in text
    assert "`-b, --brokers HOST:PORT,…`" in text


def test_broken_links_of_the_built_site_are_found(site):
    """Missing pages, missing anchors and links to others without TLS are problems."""
    at = "http://127.0.0.1:1/"
    targets = ["a.html", "a.html#top", "a.html#no", "no.html", ""]
    links = {"a.html": [*(at + target for target in targets), "http://example.com", "https://example.com"]}
    found = list(site.check.link_problems(links, {"a.html": {"top"}, "index.html": set()}, at))
    assert found == [
        "a.html: a.html#no has no such anchor",
        "a.html: no.html does not exist",
        "a.html: a link to another host must be absolute and https, got http://example.com",
    ]
