"""Records and events as the commands read, show and write them.

Read `_json_lines` first: the line format that `consume` writes and `produce` reads. Then
`_resolve`, which finds the record that an edited line means; `_inputs`, and `_output` with the text
for people.
"""

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
    error_object,
    event_json,
    read_line,
    read_record,
    record_object,
    write_line,
)
from cloudevents_kafka.cli.records._output import (
    OUTPUT_FORMATS,
    Output,
    Style,
    StyledLine,
    StyledPrinter,
    bytes_text,
    create_output,
    data_text,
    header_lines,
    is_pipe_closed,
    mode_text,
    record_heading,
    row,
)
from cloudevents_kafka.cli.records._resolve import Overrides, encode_event, resolve_line

__all__ = [
    "OUTPUT_FORMATS",
    "BadLine",
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
    "data_text",
    "encode_event",
    "encode_json",
    "error_object",
    "event_from_options",
    "event_json",
    "event_options",
    "header_lines",
    "is_pipe_closed",
    "mode_text",
    "read_errors",
    "read_line",
    "read_lines",
    "read_record",
    "read_stdin",
    "record_heading",
    "record_object",
    "resolve_line",
    "row",
    "write_line",
]
