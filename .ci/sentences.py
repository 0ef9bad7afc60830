"""Print sentences of Markdown files that are drawn at random: ``sentences.py SEED COUNT FILE…``.

A person who does not know the project reads each once. If more than five of a hundred must be read twice,
the pages need work. Headings and blocks of code are left out, and so are cells of tables that are not prose.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

_LEFT_OUT: Final = re.compile(r"^```.*?^```$|<!--.*?-->|^(?:#|!\[).*?$", re.MULTILINE | re.DOTALL)
_END: Final = re.compile(r"(?<=[.?])(?:\*\*)? (?=[A-Z`\[*(])")
_LEAST_WORDS: Final = 4  # of a sentence
_LEAST_IN_CELL: Final = 8  # words of a cell that is prose


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page."""
    lines = re.sub(r"^ *(?=[*-] |\d+\. )", "\n", _LEFT_OUT.sub("", text), flags=re.MULTILINE).splitlines()
    for kind, group in groupby(lines, key=_kind):
        if kind == "table":
            found = [cell.strip() for line in group for cell in line.strip("| ").split("|")]
            paragraphs = [cell for cell in found if len(cell.split()) >= _LEAST_IN_CELL]
        else:
            paragraphs = [" ".join(map(str.strip, group))] if kind == "text" else []
        for paragraph in paragraphs:
            yield from (one for one in _END.split(paragraph) if len(one.split()) >= _LEAST_WORDS)


def _kind(line: str) -> str:
    stripped = line.strip()
    return "table" if stripped.startswith("|") else "text" if stripped else ""


def main(seed: str, count: str, *files: str) -> None:
    """Print the sentences, with a number and the name of the file."""
    found = [(Path(file).name, one) for file in files for one in sentences(Path(file).read_text("utf-8"))]
    print(f"seed {seed}: {count} of {len(found):,} sentences")
    for number, (name, one) in enumerate(random.Random(int(seed)).sample(found, int(count)), 1):
        print(f"{number}. [{name}] {one}")


if __name__ == "__main__":
    main(*sys.argv[1:])
