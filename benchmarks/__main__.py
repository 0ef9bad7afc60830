"""Run all benchmarks, or the named ones; each prints ratios from one run.

    python benchmarks [NAME ...] [-- OPTION ...]

The options are passed to each benchmark.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def main(arguments: list[str]) -> int:
    """Run the named benchmarks and return the exit code: 2 if a name is unknown."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    names, options = arguments[:end], arguments[end + 1 :]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"NAME must be one of {', '.join(NAMES)}, got {', '.join(unknown)}", file=sys.stderr)
        return 2
    for name in names or NAMES:
        print(f"\n== {name}", flush=True)
        sys.argv = [f"benchmarks/{name}.py", *options]
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
