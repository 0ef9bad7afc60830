"""README, the home page and the tutorial say in the same words how to install the package."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_spec = spec_from_file_location("install_pages", ROOT / ".ci" / "install.py")
assert _spec is not None
assert _spec.loader is not None
install = module_from_spec(_spec)
_spec.loader.exec_module(install)


def test_the_pages_are_of_today():
    """They have what the script writes."""
    assert install.main(["--check"]) == 0


@pytest.mark.parametrize("page", install.PAGES)
def test_a_release_changes_each_page(page):
    """After it each page has one line of pip, and nothing of a checkout."""
    text = install.written(page, install.PAGES[page], released=True)
    assert text.count("pip install") == 1
    assert "git clone" not in text


def test_nothing_else_promises_the_index():
    """Until then no page installs the package itself from the index, but for extras of one that is there."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        assert "pip install cloudevents-kafka" not in page.read_text("utf-8"), page
