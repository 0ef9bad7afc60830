"""What commands need beyond the package itself: extras, Java, jars, ports.

A command calls `require` before it starts anything; ``doctor`` prints the same for all commands.
Read `_findings` first, then `_checks` (one function for each need) and `_commands` (who needs what).
"""

from __future__ import annotations

from cloudevents_kafka.cli.needs._checks import (
    EXTRAS,
    connector,
    java,
    kafka_jars,
    packages,
    port,
    table_format,
)
from cloudevents_kafka.cli.needs._commands import COMMAND_NEEDS, PARTS
from cloudevents_kafka.cli.needs._findings import Check, Finding, as_list, require

__all__ = [
    "COMMAND_NEEDS",
    "EXTRAS",
    "PARTS",
    "Check",
    "Finding",
    "as_list",
    "connector",
    "java",
    "kafka_jars",
    "packages",
    "port",
    "require",
    "table_format",
]
