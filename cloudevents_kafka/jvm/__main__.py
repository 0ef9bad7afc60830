"""Make sure of a suitable Java: find it, or install it with apt as root; print its home folder.

With ``--install-jdk`` what apt cannot do install-jdk does, whose archive is not checked.
"""

from __future__ import annotations

import sys

from cloudevents_kafka.jvm.errors import NoJava
from cloudevents_kafka.jvm.install import INSTALL_OPTION, install_java


def main() -> int:
    """Print the Java home on stdout; 1 if there is none to be had."""
    try:
        java = install_java(download=True if INSTALL_OPTION in sys.argv[1:] else None)
    except NoJava as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
