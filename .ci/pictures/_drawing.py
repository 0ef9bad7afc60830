"""A drawing of boxes, texts and arrows as SVG, for narrow screens, in light and dark mode."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

WIDTH = 400  # a phone shows it without scaling down the text much
SIZE = 13  # of text
MONO = 7.9  # the width of a character of monospaced text
_LIGHT = {
    "ink": "#1f2328",
    "soft": "#59636e",
    "line": "#6e7781",
    "room": "#eef2f7",
    "good": "#1a7f4b",
    "fine": "#d7f0e1",
    "bad": "#a63a24",
    "poor": "#fbe3dd",
    "bar": "#3f6fb5",
    "base": "#c3cbd5",
}
_DARK = {
    "ink": "#e6e9ef",
    "soft": "#a5afbd",
    "line": "#8b949e",
    "room": "#2b3240",
    "good": "#5fd397",
    "fine": "#173f2b",
    "bad": "#ff9b85",
    "poor": "#4d231b",
    "bar": "#4a78c4",
    "base": "#4b5565",
}
# The operating system decides, and on the site its own switch; the site has the drawing in its HTML.
_STYLE = """
.picture {{ {light}; font: {size}px system-ui, sans-serif; }}
@media (prefers-color-scheme: dark) {{ .picture {{ {dark}; }} }}
[data-md-color-scheme=default] .picture {{ {light}; }}
[data-md-color-scheme=slate] .picture {{ {dark}; }}
.picture text {{ fill: var(--ink); }}
.picture .soft {{ fill: var(--soft); }}
.picture .good {{ fill: var(--good); }}
.picture .bad {{ fill: var(--bad); }}
.picture .strong {{ font-weight: 600; }}
.picture .code {{ font-family: ui-monospace, monospace; white-space: pre; }}
.picture path {{ fill: none; stroke: var(--line); stroke-width: 1.3; }}
.picture polygon {{ fill: var(--line); }}
"""


class Drawing:
    """An SVG that grows downwards; coordinates are those of the viewBox, which is `WIDTH` wide."""

    def __init__(self, title: str) -> None:
        self._svg = ET.Element(
            "svg", {"xmlns": "http://www.w3.org/2000/svg", "class": "picture", "role": "img"}
        )
        ET.SubElement(self._svg, "title").text = title
        palettes = {"light": _css(_LIGHT), "dark": _css(_DARK)}
        ET.SubElement(self._svg, "style").text = _STYLE.format(size=SIZE, **palettes)

    def text(self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "start") -> None:
        """Write a line whose baseline is at ``y``."""
        attributes = {"x": f"{x:g}", "y": f"{y:g}"} | ({"class": kind} if kind else {})
        if anchor != "start":
            attributes["text-anchor"] = anchor
        ET.SubElement(self._svg, "text", attributes).text = text

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str = "room", edge: str = ""
    ) -> None:
        """Draw a box with round corners."""
        style = f"fill: var(--{fill})" + (f"; stroke: var(--{edge})" if edge else "")
        sides = {"x": x, "y": y, "width": width, "height": height, "rx": min(6, width / 2, height / 2)}
        ET.SubElement(
            self._svg, "rect", {name: f"{side:g}" for name, side in sides.items()} | {"style": style}
        )

    def card(
        self, x: float, y: float, width: float, lines: Sequence[str], *, fill: str = "room", edge: str = ""
    ) -> float:
        """Draw a box with lines of text; the first is strong. A line with ` at its start is code.

        Return the y of its lower edge.
        """
        height = 17 * len(lines) + 9
        self.box(x, y, width, height, fill=fill, edge=edge)
        for number, line in enumerate(lines):
            kind = ("code " if line.startswith("`") else "") + ("soft" if number else "strong")
            self.text(x + 10, y + 19 + 17 * number, line.removeprefix("`"), kind)
        return y + height

    def arrow(self, *points: tuple[float, float]) -> None:
        """Draw a line through the points, with a head at the last one."""
        (x, y), (before_x, before_y) = points[-1], points[-2]
        across, down = _sign(x - before_x), _sign(y - before_y)
        tail = (x - 6 * across, y - 6 * down)
        self.line(*points[:-1], tail)
        sides = [(x, y)]
        sides += [
            (tail[0] + 4 * side * down - across, tail[1] + 4 * side * across - down) for side in (1, -1)
        ]
        ET.SubElement(self._svg, "polygon", points=" ".join(f"{x:g},{y:g}" for x, y in sides))

    def line(self, *points: tuple[float, float]) -> None:
        """Draw a line through the points."""
        path = " L".join(f"{x:g} {y:g}" for x, y in points)
        ET.SubElement(self._svg, "path", d=f"M{path}")

    def dashes(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Draw a broken line."""
        path = f"M{start[0]:g} {start[1]:g} L{end[0]:g} {end[1]:g}"
        ET.SubElement(self._svg, "path", {"d": path, "stroke-dasharray": "3 3"})

    def to_svg(self, height: float) -> str:
        """Return the drawing as the text of a file."""
        self._svg.set("viewBox", f"0 0 {WIDTH} {height:g}")
        ET.indent(self._svg)
        return ET.tostring(self._svg, encoding="unicode") + "\n"


def _css(palette: dict[str, str]) -> str:
    return "; ".join(f"--{name}: {colour}" for name, colour in palette.items())


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
