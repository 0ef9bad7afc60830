"""Bar charts as SVG from the package pygal, without its scripts and styles; the page sets the colors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from cloudevents_kafka.cli.report.html import h
from cloudevents_kafka.primitives.visible import escape

_SVG: Final = "{http://www.w3.org/2000/svg}"
_DRAWN: Final = frozenset(("svg", "g", "rect", "path", "text"))
_KEPT: Final = frozenset(("class", "d", "height", "transform", "viewBox", "width", "x", "y"))
_LABELS: Final = 5  # of vertical bars
_LONGEST: Final = 24


def bars(
    title: str, names: Sequence[str], series: Sequence[Sequence[int]], *, rows: bool = False
) -> ET.Element:
    """Return a chart of stacked bars as an SVG element.

    With ``rows``, the bars are horizontal, and the first bar is at the top.
    """
    import pygal

    # pygal adds a finder of its maps, for which Python 3.11 warns at each later import.
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    # XML takes fewer characters than HTML.
    labels = [escape(name[:_LONGEST]).encode("ascii", "backslashreplace").decode() for name in names]
    few = [name if n % -(-len(labels) // _LABELS) == 0 else "" for n, name in enumerate(labels)]
    chart = (pygal.HorizontalStackedBar if rows else pygal.StackedBar)(
        x_labels=labels[::-1] if rows else few,
        width=480,
        height=60 + 24 * len(labels) if rows else 240,
        margin=6,
        spacing=4,
        show_legend=False,
        truncate_label=-1,
        min_scale=2,
        max_scale=4,
        value_formatter="{:,g}".format,
        disable_xml_declaration=True,
        js=(),
    )
    for number, values in enumerate(series):
        chart.add(str(number), list(values)[::-1] if rows else list(values))
    drawing = _clean(ET.fromstring(chart.render()))  # noqa: S314  # pygal wrote it
    drawing.attrib.update({"role": "img", "aria-label": title})
    drawing.insert(0, h("title", title))
    return drawing


def _clean(element: ET.Element) -> ET.Element:
    """Return the visible parts of a pygal SVG element; each value becomes an element ``title``."""
    cleaned = h(element.tag.removeprefix(_SVG), element.text or "")
    cleaned.attrib.update({name: text for name, text in element.items() if name in _KEPT})
    for child in element:
        if child.tag.removeprefix(_SVG) in _DRAWN:
            cleaned.append(_clean(child))
        elif child.get("class") == "value":
            cleaned.append(h("title", child.text or ""))
    return cleaned
