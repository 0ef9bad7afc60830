"""SVG charts: grouped bars, and steps over ranges of integers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

WIDTH: Final = 900
_LEFT: Final = 70
_RIGHT: Final = 30
_SPAN: Final = WIDTH - _LEFT - _RIGHT
_COLOURS: Final = ("#4c6a92", "#3a9d7a", "#d99b2b", "#b5493f")  # distinct in grey, too
_INK: Final = "#222222"
_GRID: Final = "#d8d8d8"


class Panel(NamedTuple):
    """A part of a page: its height and elements, with coordinates from its top."""

    height: int
    elements: Sequence[str]


def page(title: str, *panels: Panel) -> str:
    """Return an SVG of a title and panels, from top to bottom."""
    tops = list(accumulate((panel.height for panel in panels), initial=50))
    area = f'viewBox="0 0 {WIDTH} {tops[-1]}" width="{WIDTH}" height="{tops[-1]}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {area} font-family="Helvetica, Arial, sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{tops[-1]}" fill="#ffffff"/>',
        _text(_LEFT, 32, title, size=19, weight="bold"),
    ]
    for top, panel in zip(tops, panels, strict=False):
        parts += [f'<g transform="translate(0 {top})">', *panel.elements, "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def bars(title: str, names: Sequence[str], groups: Sequence[tuple[str, Sequence[int]]]) -> Panel:
    """Return a chart with a group of bars for each of ``groups``, and a bar for each of ``names``."""
    base, full = 300, 210
    most = max(max(values) for _, values in groups)
    elements = [
        _text(_LEFT, 20, title, weight="bold"),
        *_legend(names, 44),
        _line(_LEFT, base, WIDTH - _RIGHT, base),
    ]
    width = _SPAN / len(groups)
    bar = width * 0.84 / len(names)
    for number, (label, values) in enumerate(groups):
        left = _LEFT + width * number + width * 0.08
        for colour, value in zip(_COLOURS, values, strict=False):
            height = full * value / most
            elements.append(_rect(left, base - height, bar - 4, height, colour))
            elements.append(_text(left + bar / 2 - 2, base - height - 6, f"{value:,}", anchor="middle"))
            left += bar
        elements.append(_text(_LEFT + width * (number + 0.5), base + 20, label, anchor="middle"))
    return Panel(base + 50, elements)


def steps(title: str, ranges: Sequence[tuple[int, int, int]], colour: int) -> Panel:
    """Return a chart of ranges (size in bytes, first, last), in the colour of a bar.

    The axis is not linear: all ranges have the same width, with their edges below.
    """
    base, unit = 190, 28
    width = _SPAN / len(ranges)
    elements = [_text(_LEFT, 20, title, weight="bold")]
    for height in range(1, max(r[0] for r in ranges) + 1):
        elements += [
            _line(_LEFT, base - unit * height, WIDTH - _RIGHT, base - unit * height, _GRID),
            _text(_LEFT - 10, base - unit * height + 5, str(height), anchor="end"),
        ]
    for number, (height, first, last) in enumerate(ranges):
        left = _LEFT + width * number
        elements.append(_rect(left + 1, base - unit * height, width - 2, unit * height, _COLOURS[colour]))
        for line, edge in enumerate((f"{first:,} to", f"{last:,}")):
            elements.append(_text(left + width / 2, base + 16 + 14 * line, edge, anchor="middle", size=10))
    elements.append(_line(_LEFT, base, WIDTH - _RIGHT, base))
    return Panel(base + 60, elements)


def _legend(names: Sequence[str], y: float) -> list[str]:
    elements, left = [], float(_LEFT)
    for colour, name in zip(_COLOURS, names, strict=False):
        elements += [_rect(left, y - 11, 12, 12, colour), _text(left + 18, y, name)]
        left += 50 + 7.5 * len(name)
    return elements


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = _INK) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(
    x: float, y: float, text: str, *, size: int = 13, anchor: str = "start", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{_INK}">{escape(text)}</text>'
    )
