"""SVG charts: grouped bars, and steps over ranges of integers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Final
from xml.etree import ElementTree as ET

_WIDTH: Final = 900
_LEFT: Final = 70
_SPAN: Final = _WIDTH - _LEFT - 30
_COLOURS: Final = ("#4c6a92", "#3a9d7a", "#d99b2b", "#b5493f")  # distinct in grey, too


def page(title: str, *charts: tuple[int, ET.Element]) -> str:
    """Return an SVG of a title and charts (height and group) from top to bottom."""
    *tops, height = accumulate((height for height, _ in charts), initial=50)
    svg = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", width=str(_WIDTH), height=str(height))
    svg.attrib |= {"viewBox": f"0 0 {_WIDTH} {height}", "font-family": "Helvetica, Arial, sans-serif"}
    ET.SubElement(svg, "title").text = title
    _rect(svg, (0, 0, _WIDTH, height), "#ffffff")
    _text(svg, _LEFT, 32, title, size=19)
    for top, (_, chart) in zip(tops, charts, strict=True):
        chart.set("transform", f"translate(0 {top})")
        svg.append(chart)
    ET.indent(svg)
    return ET.tostring(svg, encoding="unicode") + "\n"


def bars(
    title: str, names: Sequence[str], groups: Sequence[tuple[str, Sequence[int | None]]], note: str
) -> tuple[int, ET.Element]:
    """Return a chart with a group of bars for each of ``groups``, and a bar for each of ``names``.

    A group has no bar for None. The note stands below.
    """
    base, unit = 300, 210 / max(value or 0 for _, values in groups for value in values)
    chart = _chart(title, base)
    for number, (name, colour) in enumerate(zip(names, _COLOURS, strict=True)):
        _rect(chart, (_LEFT + 170 * number, 33, 12, 12), colour)
        _text(chart, _LEFT + 170 * number + 18, 44, name)
    width = _SPAN / len(groups)
    bar = width * 0.84 / len(names)
    for number, (label, values) in enumerate(groups):
        for left, value, colour in zip(range(len(names)), values, _COLOURS, strict=True):
            if value is None:
                continue
            x = _LEFT + width * (number + 0.08) + bar * left
            _rect(chart, (x, base - unit * value, bar - 4, unit * value), colour)
            _text(chart, x + bar / 2 - 2, base - unit * value - 6, f"{value:,}", anchor="middle")
        _text(chart, _LEFT + width * (number + 0.5), base + 20, label, anchor="middle", size=12)
    _text(chart, _LEFT, base + 44, note, size=12)
    return base + 74, chart


def steps(title: str, ranges: Sequence[tuple[int, int, int]], colour: int) -> tuple[int, ET.Element]:
    """Return a chart of ranges (size in bytes, first, last), in the colour of a bar.

    The axis is not linear: all ranges have the same width, with their edges below.
    """
    base, unit = 190, 28
    chart = _chart(title, base)
    width = _SPAN / len(ranges)
    for number, (size, first, last) in enumerate(ranges):
        left, top = _LEFT + width * number, base - unit * size
        _rect(chart, (left + 1, top, width - 2, unit * size), _COLOURS[colour])
        edges = (base + 14, f"{first:,}"), (base + 26, "to"), (base + 38, f"{last:,}")
        for y, text in ((top - 6, str(size)), *edges):
            _text(chart, left + width / 2, y, text, anchor="middle", size=10)
    return base + 68, chart


def _chart(title: str, base: int) -> ET.Element:
    chart = ET.Element("g")
    _text(chart, _LEFT, 20, title, size=15)
    _rect(chart, (_LEFT, base, _SPAN, 1), "#222222")
    return chart


def _rect(parent: ET.Element, box: tuple[float, float, float, float], colour: str) -> None:
    sides = {name: f"{side:.1f}" for name, side in zip(("x", "y", "width", "height"), box, strict=True)}
    ET.SubElement(parent, "rect", sides, fill=colour)


def _text(
    parent: ET.Element, x: float, y: float, text: str, *, size: int = 13, anchor: str = "start"
) -> None:
    attributes = {"x": f"{x:.1f}", "y": f"{y:.1f}", "font-size": str(size), "text-anchor": anchor}
    ET.SubElement(parent, "text", attributes).text = text
