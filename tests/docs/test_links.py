"""Links of README, CONTRIBUTING and the pages of docs lead to files and sections that exist."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

from tests.support.cases import each

ROOT = Path(__file__).parents[2]
SOURCES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "RELEASING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROJECT = re.compile(r"https://github\.com/cloudevents-kafka/cloudevents-kafka/(?:blob|tree)/main/(.+)")
# Pages of the project's host that are not files of it.
HOSTED = re.compile(r"https://github\.com/cloudevents-kafka/cloudevents-kafka(/issues)?/?")


def without_code(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, as the site makes them from headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+?) *$", without_code(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).replace("`", "")
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())
        number = 1
        while slug in found:
            slug = f"{slug.removesuffix(f'_{number - 1}')}_{number}"
            number += 1
        found.add(slug)
    return found


def problem(page: Path, target: str) -> str | None:
    """Return what is wrong with a link of a page, or None."""
    if HOSTED.fullmatch(target.partition("#")[0]):
        return None
    if of_project := PROJECT.fullmatch(target):
        target, page = of_project[1], ROOT / "README.md"
    elif "://" in target or target.startswith("mailto:"):
        return None if target.startswith("https://") else f"{target}: must be https"
    path, _, anchor = target.partition("#")
    goal = (page.parent / path).resolve() if path else page
    if not goal.exists():
        return f"{target}: does not exist"
    made = "reference" in goal.parts  # sections of the reference are made from docstrings
    if anchor and goal.suffix == ".md" and not made and anchor not in anchors(goal):
        return f"{target}: {goal.name} has no such section, but {', '.join(sorted(anchors(goal)))}"
    return None


@each("page", SOURCES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_sections(page: Path) -> None:
    """A link names a file or folder by its path or its address; an anchor is a section of it."""
    targets = re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", without_code(page))
    assert [found for target in targets if (found := problem(page, target))] == []


@each(
    ("target", "wrong"),
    [
        ("docs/licences.md", False),
        ("docs/licences.md#of-the-package", False),
        ("docs/licences.md#no-section", True),
        ("docs/none.md", True),
        ("#no-section", True),
        (
            "https://github.com/cloudevents-kafka/cloudevents-kafka/blob/main/docs/licences.md#of-the-package",
            False,
        ),
        ("https://github.com/cloudevents-kafka/cloudevents-kafka/blob/main/docs/none.md", True),
        ("https://example.com", False),
        ("http://example.com", True),
    ],
)
def test_broken_links_are_found(target: str, *, wrong: bool) -> None:
    """A missing file or section, here or by the project's address, and a link without TLS are broken."""
    assert (problem(ROOT / "README.md", target) is not None) == wrong
