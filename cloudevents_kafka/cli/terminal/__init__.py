"""The terminal: exit codes, text that is safe to print, parameter types, signals, progress.

Read `_errors` first: each exit code and the exception that ends a command with it. Then `_escape`,
`_parameters`, `_signals` and `_streams`.
"""

from cloudevents_kafka.cli.terminal._errors import (
    BAD_DATA,
    BROKEN_PIPE,
    BadData,
    BadUsage,
    BrokerFailure,
    CommandError,
    redact_usage_error,
    require_extra,
)
from cloudevents_kafka.cli.terminal._escape import escape, escape_json, escape_lines
from cloudevents_kafka.cli.terminal._parameters import (
    BYTES,
    FILE,
    SecondsType,
    header_option,
    is_utf8,
    parse_pair,
    parse_pairs,
    require_utf8,
)
from cloudevents_kafka.cli.terminal._signals import Interrupted, Interrupts
from cloudevents_kafka.cli.terminal._streams import Progress, discard_stdout, standard_streams

__all__ = [
    "BAD_DATA",
    "BROKEN_PIPE",
    "BYTES",
    "FILE",
    "BadData",
    "BadUsage",
    "BrokerFailure",
    "CommandError",
    "Interrupted",
    "Interrupts",
    "Progress",
    "SecondsType",
    "discard_stdout",
    "escape",
    "escape_json",
    "escape_lines",
    "header_option",
    "is_utf8",
    "parse_pair",
    "parse_pairs",
    "redact_usage_error",
    "require_extra",
    "require_utf8",
    "standard_streams",
]
