"""``table``: maintain the tables that ``pipeline`` writes. Each command has its own module.

The commands `optimize` and `vacuum` use the options in `_options`; the command `replay` defines its own
options.
"""

from __future__ import annotations

from typing import Final

import click

from cloudevents_kafka.cli.app import LazyGroup

COMMANDS: Final = {
    "optimize": "Join small files into larger files.",
    "vacuum": "Delete files that no recent version needs.",
    "replay": "Read the quarantine again, and write the records that are now events.",
}


@click.group(cls=LazyGroup, package=__name__, summaries=COMMANDS)
def command() -> None:
    """Maintain the tables that the pipeline writes.

    Each batch of the pipeline adds files to Delta and Iceberg tables, and each commit adds a version of the
    table. Run "optimize" and "vacuum" regularly, for example once a day.
    """
