"""Tables as aligned text."""

from __future__ import annotations

from collections.abc import Sequence

from cloudevents_kafka.primitives.visible import escape


def format_table(header: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text; columns of numbers are aligned to the right, and other columns to the left."""
    lines = [*([header] if header else []), *([escape(cell) for cell in row] for row in rows)]
    columns = [_align(cells, has_header=header is not None) for cells in zip(*lines, strict=True)]
    return "\n".join("  " + "  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _align(cells: Sequence[str], *, has_header: bool) -> list[str]:
    width = max(map(len, cells))
    is_right = all(not cell or cell.replace(",", "").isdigit() for cell in cells[has_header:])
    aligned = [cell.rjust(width) if is_right else cell.ljust(width) for cell in cells]
    return [aligned[0], "-" * width, *aligned[1:]] if has_header else aligned
