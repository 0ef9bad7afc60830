"""Write how to install the package into README, the home page and the tutorial.

    python .ci/install.py [--check]

At the first release set `RELEASED` to True, and run it. ``--check`` writes nothing, and exits with status 1
if a page has another text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Whether the package index has the package.
RELEASED = False
# The pages, with the extras that their readers need.
PAGES = {"README.md": "cli", "docs/index.md": "cli", "docs/tutorial.md": "cli,spark,testing"}

_PART = re.compile(r"(<!-- install -->\n).*?(<!-- /install -->)", re.DOTALL)
_FROM_INDEX = """\
```sh
pip install "cloudevents-kafka[{extras}]"
```
"""
_FROM_CHECKOUT = """\
The package index does not have the package yet. Install it from a checkout:

```sh
git clone https://github.com/cloudevents-kafka/cloudevents-kafka
pip install "./cloudevents-kafka[{extras}]"
```

If you have a wheel, install that: `pip install "./cloudevents_kafka-0.1.0-py3-none-any.whl[{extras}]"`.
"""


def text(extras: str, *, released: bool) -> str:
    """Return how to install the package with some extras, in Markdown."""
    return (_FROM_INDEX if released else _FROM_CHECKOUT).format(extras=extras)


def written(page: str, extras: str, *, released: bool = RELEASED) -> str:
    """Return the text of a page with its part about the installation."""
    part = text(extras, released=released)
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
