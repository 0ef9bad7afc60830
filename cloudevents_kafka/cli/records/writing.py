"""The output of `consume`: text, JSON lines, one line per record, a template, or bare values."""

from __future__ import annotations

import sys
from typing import Any, Final

from cloudevents_kafka.binding import Decoded, Undecodable
from cloudevents_kafka.cli.records.json_lines import write_line
from cloudevents_kafka.cli.records.output import data_text, item_lines
from cloudevents_kafka.cli.records.registry_data import RegistryData
from cloudevents_kafka.cli.records.template import LINE, LINE_OF_OTHERS, Template
from cloudevents_kafka.cli.terminal.text import escape_lines, fit_words, print_lines, width_of
from cloudevents_kafka.primitives.visible import escape

OUTPUT_FORMATS: Final = ("json", "text", "line", "raw")


class Output:
    """The output of `consume`: `write` adds a record, and `flush` writes the added records to stdout.

    The default format is text on a terminal, and JSON lines elsewhere. The format ``line`` writes one line
    for each record, cut to the width of a terminal. ``template`` is the user's own format for such lines. The
    format ``raw`` writes the value of each record and a line end. For a null value, it writes an empty line.
    On a terminal, control characters are escaped. ``registry`` decodes data with the schemas of a schema
    registry.
    """

    def __init__(
        self, format: str | None, template: str | None = None, registry: RegistryData | None = None
    ) -> None:
        self._terminal = sys.stdout.isatty()
        self._format = "line" if template is not None else format or ("text" if self._terminal else "json")
        self._is_text = self._format in {"text", "line"} or (self._format == "raw" and self._terminal)
        self._width = width_of(sys.stdout) if template is None else None
        self._event = Template(LINE if template is None else template, self._data_text)
        self._other = Template(LINE_OF_OTHERS if template is None else template, self._data_text)
        self._registry = registry
        self.has_registry = registry is not None
        self._buffer: list[Any] = []

    def write(self, item: Decoded | Undecodable) -> None:
        """Add a record to the output."""
        if self._format == "json":
            self._buffer.append(write_line(item, self._decoded(item)))
        elif self._format == "text":
            self._buffer += item_lines(item, self._data_text)
        elif self._format == "line":
            line = (self._event if isinstance(item, Decoded) else self._other).render(item)
            self._buffer.append(line if self._width is None else fit_words(line, self._width))
        else:
            value = item.record.value or b""
            text = escape_lines(value.decode("utf-8", "backslashreplace")) if self._terminal else None
            self._buffer.append(value + b"\n" if text is None else text)

    def _decoded(self, item: Decoded | Undecodable) -> dict[str, Any]:
        return self._registry(item) if self._registry and isinstance(item, Decoded) else {}

    def _data_text(self, item: Decoded) -> str:
        decoded = self._decoded(item)
        if "decoded" in decoded:
            return escape(bytes(decoded["decoded"]).decode())
        reason = decoded.get("decode_error")
        return data_text(item.event) + (f"  not decoded: {escape(reason)}" if reason else "")

    def flush(self) -> None:
        """Write the added records to stdout."""
        buffer, self._buffer = self._buffer, []
        if self._is_text:
            print_lines(buffer, whole_words=self._format == "text")
        else:
            sys.stdout.buffer.write(b"".join(buffer))
            sys.stdout.buffer.flush()
