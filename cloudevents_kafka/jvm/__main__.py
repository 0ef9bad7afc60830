"""Make sure of a suitable Java: find it, or install it; print its home folder."""

from __future__ import annotations

import sys

from cloudevents_kafka.jvm.errors import NoJava
from cloudevents_kafka.jvm.install import install_java


def main() -> int:
    """Print the Java home on stdout; 1 if there is none to be had."""
    try:
        java = install_java()
    except NoJava as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
