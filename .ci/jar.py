"""Compile the Java function of `decode_events`, and put its jar into the package: `make jar`."""

from __future__ import annotations

import sys
from pathlib import Path

from cloudevents_kafka.spark.java.jar import packaged_jar, write_jar


def main() -> int:
    """Replace the jar in the package by one of the current sources."""
    jar = Path(str(packaged_jar()))
    jar.parent.mkdir(exist_ok=True)
    for old in jar.parent.glob("*.jar"):
        old.unlink()
    write_jar(jar)
    print(jar)
    return 0


if __name__ == "__main__":
    sys.exit(main())
