"""Sentences that are drawn for a reader are those of the prose of a page."""

from __future__ import annotations

import runpy
from pathlib import Path

sentences = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "sentences.py"))["sentences"]


def test_sentences_of_a_page() -> None:
    """Headings, code and short cells are left out; paragraphs and items end a sentence."""
    page = (
        "# A heading that is long enough\n\nOne sentence over\ntwo lines. Another one is here.\n\n"
        "```python\nprint('this is not prose, as it is code')\n```\n\n"
        "* An item without an end\n* The next item has one.\n\n"
        "| what | why |\n|---|---|\n| short cell | A cell of a table with eight words or more. |\n"
    )
    assert list(sentences(page)) == [
        "One sentence over two lines.",
        "Another one is here.",
        "* An item without an end",
        "* The next item has one.",
        "A cell of a table with eight words or more.",
    ]
