"""The command-line program ``cloudevents-kafka``.

Read the module `app` first: it contains the table of commands, and imports the module of a command when the
command is used. Each command is a module in `commands`. The commands share three packages: `terminal` (errors
and exit codes, safe output, signals, options from structs), `records` (records as JSON lines and as text, and
their explanations) and `kafka` (settings of the Kafka client, reading, sending). The module `options_file`
reads and writes options files.
"""

from __future__ import annotations

import sys

from cloudevents_kafka.primitives.installing import pip_install

__all__ = ["main"]


def main() -> None:
    """Run the command line. If the package click is missing, print what to install, and exit with code 2."""
    try:
        import click  # noqa: F401  # only to check that it is installed
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print(f"cloudevents-kafka needs click: {pip_install('cli')}", file=sys.stderr)
        sys.exit(2)
    from cloudevents_kafka.cli.app import app

    app(prog_name="cloudevents-kafka")
