"""Print the home folder of a suitable Java, after installing one with apt (as root) if there is none.

With ``--install-jdk``, install-jdk downloads one if apt fails; its archive is not checked.
"""

from __future__ import annotations

import sys

from cloudevents_kafka.jvm import INSTALL_OPTION, NoJava, install_java

if __name__ == "__main__":
    try:
        sys.stdout.write(f"{install_java(download=INSTALL_OPTION in sys.argv).home}\n")
    except NoJava as error:
        sys.exit(str(error))
