"""Write how to install the package into README, the home page and the tutorial.

    python .ci/install.py [--check]

At the first release empty `SOURCE` in `cloudevents_kafka.primitives.installing`, and run it. ``--check``
writes nothing, and exits with status 1 if a page has another text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cloudevents_kafka.primitives.installing import SOURCE, pip_install

ROOT = Path(__file__).resolve().parents[1]
# The pages, with the extras that their readers need.
PAGES = {"README.md": "cli", "docs/index.md": "cli", "docs/tutorial.md": "cli,spark,testing"}

_PART = re.compile(r"(<!-- install -->\n).*?(<!-- /install -->)", re.DOTALL)
_NOT_RELEASED = """\
The package is not on PyPI yet. This command installs the package from its repository:

"""


def text(extras: str, source: str) -> str:
    """Return how to install the package with some extras from a source, in Markdown."""
    command = f"```sh\n{pip_install(extras, source)}\n```\n"
    return f"{_NOT_RELEASED}{command}" if source else command


def written(page: str, extras: str, source: str = SOURCE) -> str:
    """Return the text of a page with its part about the installation."""
    part = text(extras, source)
    return _PART.sub(lambda match: match[1] + part + match[2], (ROOT / page).read_text("utf-8"))


def main(arguments: list[str]) -> int:
    """Write or check the pages, and return the exit status."""
    old = [
        page for page, extras in PAGES.items() if (ROOT / page).read_text("utf-8") != written(page, extras)
    ]
    if "--check" not in arguments:
        for page in old:
            (ROOT / page).write_text(written(page, PAGES[page]), "utf-8")
        return 0
    for page in old:
        print(f"{page}: run python .ci/install.py")
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
