"""Print the home folder of a suitable Java, after installing one with apt (as root) if there is none.

With ``--install-jdk``, install-jdk downloads one if apt fails; its archive is not checked.
"""

from __future__ import annotations

import sys

from cloudevents_kafka.jvm import INSTALL_OPTION, NoJava, install_java


def main() -> int:
    """Print the Java home; return 1 if there is none and none can be installed."""
    try:
        java = install_java(download=True if INSTALL_OPTION in sys.argv[1:] else None)
    except NoJava as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{java.home}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
