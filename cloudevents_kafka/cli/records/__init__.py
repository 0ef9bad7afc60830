"""Records and events as the commands read, show and write them.

Read `_json_lines` first: the line format that `consume` writes and `produce` reads. Then
`_resolve`, which finds the record that an edited line means; `_text` and `_explain`, the text for
people; `_inputs` and `_output`.
"""

from cloudevents_kafka.cli.records._explain import (
    Explanation,
    explain,
    explanation_lines,
    explanation_object,
)
from cloudevents_kafka.cli.records._inputs import (
    InputLine,
    event_from_options,
    event_options,
    read_errors,
    read_lines,
    read_stdin,
)
from cloudevents_kafka.cli.records._json_lines import (
    BadLine,
    JsonLine,
    bytes_from_json,
    bytes_to_json,
    encode_json,
    read_line,
    read_record,
    write_line,
)
from cloudevents_kafka.cli.records._output import OUTPUT_FORMATS, Output, create_output, is_pipe_closed
from cloudevents_kafka.cli.records._resolve import Overrides, encode_event, resolve_line
from cloudevents_kafka.cli.records._text import (
    Style,
    StyledLine,
    StyledPrinter,
    bytes_text,
    header_lines,
    record_heading,
    row,
)

__all__ = [
    "OUTPUT_FORMATS",
    "BadLine",
    "Explanation",
    "InputLine",
    "JsonLine",
    "Output",
    "Overrides",
    "Style",
    "StyledLine",
    "StyledPrinter",
    "bytes_from_json",
    "bytes_text",
    "bytes_to_json",
    "create_output",
    "encode_event",
    "encode_json",
    "event_from_options",
    "event_options",
    "explain",
    "explanation_lines",
    "explanation_object",
    "header_lines",
    "is_pipe_closed",
    "read_errors",
    "read_line",
    "read_lines",
    "read_record",
    "read_stdin",
    "record_heading",
    "resolve_line",
    "row",
    "write_line",
]
