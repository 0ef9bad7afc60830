"""Run the benchmarks: all of them, or those named. Each prints ratios from one run.

python benchmarks [converters] [clients] [protocol] [protocol_clients] [spark_decode]
    [-- options of the last one named]
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(
    path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_") and path.stem != "sidebyside"
)


def main(arguments: list[str]) -> int:
    """Run what is named, in turn; 2 for a name that is none."""
    names, _, options = (
        (arguments, "", []) if "--" not in arguments else _cut(arguments, arguments.index("--"))
    )
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(HERE))
    for name in names or NAMES:
        print(f"\n== {name}", flush=True)
        sys.argv = [f"benchmarks/{name}.py", *options]
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    return 0


def _cut(arguments: list[str], at: int) -> tuple[list[str], str, list[str]]:
    return arguments[:at], "--", arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
