"""The commands of this folder: ``python spec-conformance COMMAND``."""

from __future__ import annotations

from typing import Final

import click

from cloudevents_kafka.cli.app import LazyGroup

COMMANDS: Final = {
    "clauses": "Run the clauses of CloudEvents against the library.",
    "kip625": "Print what variable-length integers would save.",
}


@click.group(
    cls=LazyGroup,
    package="conformance",
    summaries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def app() -> None:
    """Show what the library does with the requirements in this folder.

    Exit codes: 0 success, 1 a case or a test failed, 2 bad usage.
    """
