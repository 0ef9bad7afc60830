"""The command line: ``cloudevents-kafka``, one module per command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; where click is missing, say what to install and exit 2."""
    try:
        import click  # noqa: F401  # only to see whether it is there
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print("cloudevents-kafka needs click and rich: pip install 'cloudevents-kafka[cli]'", file=sys.stderr)
        sys.exit(2)
    from cloudevents_kafka.cli.app import app

    app(prog_name="cloudevents-kafka")
