"""Hooks of MkDocs: what pages show that is written elsewhere.

* A link out of the folder of pages, such as ``../examples/emit.py``, leads to the file on the project's host,
  or to the page that includes it.
* A drawing becomes a part of the page, so that it follows the page's switch from light to dark.
* ``<!-- include: FILE -->`` is replaced by a Markdown file of the repository.
* ``<!-- command line -->`` is replaced by the help of all commands.
* A mark of the tests after a block's language, as in ``python spark``, is left out.
* In the reference, the name of a public object in a docstring is a link to it.
* A search finds pages with tasks before the reference, and the reference before lists such as the changelog.
* The name of the site and the last line have the version, so each page has it.
* Cells of tables have the names of their columns, under which they stand on a phone.
"""

from __future__ import annotations

import html
import posixpath
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cloudevents_kafka

sys.path.insert(0, str(Path(__file__).parent))

import command_line  # next to this file, which is not in a package
import public_names

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/cloudevents-kafka/cloudevents-kafka"
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_MARKED = re.compile(r"^(```\w+) spark$", re.MULTILINE)
_INCLUDE = re.compile(r"<!-- include: (\S+) -->")
_SHOWN = re.compile(r"^::: ([\w.]+)", re.MULTILINE)
# How much a page counts in a search, by its folder; 1 is the default.
_BOOSTS = {
    "how-to": 4,
    "reference": 0.5,
    "proofs": 0.2,
    "changelog.md": 0.2,
    "licences.md": 0.2,
    "design.md": 0.5,
}
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_HEAD = re.compile(r"<th[^>]*>(.*?)</th>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_DRAWING = re.compile(r'<img alt="([^"]*)" src="([^":]+\.svg)"\s*/?>')
_CODE = re.compile(
    r"(?<!<autoref)(<a [^>]*>.*?</a>|<pre.*?</pre>|<h\d.*?</h\d>|<code>([A-Za-z_][\w.]*)(?:\(\))?</code>)",
    re.DOTALL,
)


def on_config(config: Any, **_: Any) -> Any:
    """Return the settings of the site, whose name and last line have the version of the package."""
    config.site_name = f"{config.site_name} {cloudevents_kafka.__version__}"
    config.copyright = f"Version {cloudevents_kafka.__version__}"
    return config


@cache
def including_pages() -> dict[str, str]:
    """Return the page that includes a file of the repository, by the path of the file."""
    pages = (ROOT / "docs").rglob("*.md")
    found = {page.relative_to(ROOT).as_posix(): _INCLUDE.search(page.read_text("utf-8")) for page in pages}
    return {include[1]: page for page, include in found.items() if include is not None}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with what it includes, and with links to the project's host."""
    source = f"docs/{page.file.src_uri}"
    if (boost := _BOOSTS.get(page.file.src_uri.partition("/")[0])) is not None:
        page.meta["search"] = {"boost": boost}
    markdown = _outside_code(_MARKED.sub(r"\1", markdown), posixpath.dirname(source), source)
    markdown = _INCLUDE.sub(
        lambda match: _outside_code(_read(match[1]), posixpath.dirname(match[1]), source), markdown
    )
    return markdown.replace("<!-- command line -->", command_line.to_markdown())


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Return the HTML of a page with its drawings in it, and with links to public objects."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")
    content = _DRAWING.sub(lambda match: _drawing(match[2], folder), content)
    content = _TABLE.sub(lambda match: _with_names(match[0]), content)
    if not page.file.src_uri.startswith("reference/"):
        return content
    shown = tuple(_SHOWN.findall(page.markdown or ""))
    return _CODE.sub(lambda match: _reference(match, shown), content)


def _read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def _outside_code(markdown: str, folder: str, page: str) -> str:
    """Return a text whose links start in a folder, with links that work on the page of the site."""
    parts = re.split(f"({_FENCE.pattern})", markdown, flags=_FENCE.flags)
    return "".join(
        part
        if number % 2
        else _LINK.sub(lambda match: match[1] + _target(match[2], folder, page) + match[3], part)
        for number, part in enumerate(parts)
    )


def _target(target: str, folder: str, page: str) -> str:
    """Return the target of a link of a file in a folder, seen from the page."""
    parts = urlsplit(target)
    if parts.scheme or not parts.path:
        return target
    path = posixpath.normpath(posixpath.join(folder, parts.path))
    path = including_pages().get(path, path)
    anchor = f"#{parts.fragment}" if parts.fragment else ""
    if path.startswith("docs/"):
        return posixpath.relpath(path, posixpath.dirname(page)) + anchor
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path}{anchor}"


def _with_names(table: str) -> str:
    """Return a table of two and more columns whose cells have the names of their columns."""
    names = [_TAG.sub("", name).strip() for name in _HEAD.findall(table)]
    if len(names) < 2:
        return table
    rows = re.split(r"(<tr>)", table)
    return "".join(_named(row, names) for row in rows).replace("<table>", "<table data-stacked>", 1)


def _named(row: str, names: list[str]) -> str:
    left = iter(names)
    return re.sub(r"<td", lambda _: f'<td data-label="{html.escape(next(left, ""))}"', row)


def _drawing(source: str, folder: str) -> str:
    """Return a drawing as HTML; its title is its text for those who do not see it."""
    path = posixpath.normpath(posixpath.join(folder, source))
    return _read(path).strip()


def _reference(match: re.Match[str], shown: tuple[str, ...]) -> str:
    """Return the code of a name as a link, if it is the name of a public object."""
    identifier = public_names.identifier(match[2], shown) if match[2] else None
    return (
        match[0]
        if identifier is None
        else f'<autoref identifier="{identifier}" optional>{match[0]}</autoref>'
    )
