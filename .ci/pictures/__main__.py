"""Write the pictures of ``docs/assets``, which tests compare with what they show.

    python .ci/pictures [NAME...] [--check] [--list]

Without a name, all of them. ``--check`` writes nothing, and exits with status 1 if a file is not what it
would write; ``--list`` prints the names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "assets"
# The module that draws each picture, and its function; they import what they show.
PICTURES = {
    "house": ("_house", "draw"),
    "flow": ("_flow", "draw"),
    "landed_topic": ("_landed", "draw"),
    "speed_of_converters": ("_speed", "draw_converters"),
    "speed_by_sdk": ("_speed", "draw_sdks"),
    "speed_of_landing": ("_speed", "draw_landing"),
}


def drawn(name: str) -> str:
    """Return a picture as SVG."""
    module, function = PICTURES[name]
    draw: Callable[[Path], str] = getattr(import_module(module), function)
    return draw(ROOT)


def main(arguments: list[str]) -> int:
    """Write, check or list the pictures, and return the exit status."""
    parser = argparse.ArgumentParser(prog=".ci/pictures", description="Write the pictures of docs/assets.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the pictures (default: all)")
    parser.add_argument("--check", action="store_true", help="compare the files, and write nothing")
    parser.add_argument("--list", action="store_true", help="print the names and exit")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - PICTURES.keys()):
        parser.error(f"NAME must be one of {', '.join(PICTURES)}, got {', '.join(unknown)}")
    names = options.names or list(PICTURES)
    if options.list:
        print(*names, sep="\n")
        return 0
    stale = []
    for name in names:
        path, svg = FOLDER / f"{name}.svg", drawn(name)
        if not options.check:
            path.write_text(svg, encoding="utf-8")
        elif not path.exists() or path.read_text("utf-8") != svg:
            stale.append(path.name)
    if stale:
        print(f"{', '.join(stale)} must show what is true today; do: make pictures", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
