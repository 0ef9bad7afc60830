"""The house: the rooms of the package on their floors, with the imports that the modules have."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import grimp
from _drawing import MONO, WIDTH, Drawing

PACKAGE = "cloudevents_kafka"
# What is on a floor, by its first room.
CAPTIONS = {
    "cli": "the command line",
    "testing": "brokers and fakes for tests",
    "spark": "DataFrames and the pipeline",
    "clients": "clients, handlers, dead letters, logins",
    "extensions": "extensions, what users add, and counts",
    "binding": "a record to an event, and back",
    "errors": "the tree of errors",
    "formats": "a whole event to one value, and back",
    "event": "one event, exact and immutable",
    "codecs": "a payload to data, and back",
    "attributes": "the types and rules of attributes",
    "jvm": "Java and its jars",
    "problems": "broken rules, and the errors of values",
    "record": "what the packages above pass on",
    "message_headers": "what a client returns as headers",
    "protocol": "Kafka's protocol, without CloudEvents",
    "primitives": "integers, caches, masked secrets, URLs",
}
_ROOMS_WIDTH = 300
_LANE = 11


def floors(root: Path) -> list[list[str]]:
    """Return the rooms of each floor from top to bottom, as the import contract has them."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"\w+", part) for layer in layers for part in layer.split("|")]


def imports(rooms: list[list[str]]) -> set[tuple[int, int]]:
    """Return the pairs of floors of which a module of the first imports one of the second."""
    floor = {name: number for number, names in enumerate(rooms) for name in names}
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    found = {
        (floor[upper], floor[lower])
        for module in graph.modules
        if (upper := _room(module)) in floor
        for other in graph.find_modules_directly_imported_by(module)
        if (lower := _room(other)) in floor
    }
    return {(upper, lower) for upper, lower in found if upper != lower}


def _room(module: str) -> str:
    return (module + "..").split(".")[1]


def without_shortcuts(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs that do not follow from others, those of near floors first."""
    below: dict[int, set[int]] = {}
    for upper, lower in sorted(pairs, reverse=True):
        below.setdefault(upper, set()).update({lower}, below.get(lower, set()))
    kept = [
        (upper, lower)
        for upper, lower in pairs
        if not any(lower in below.get(other, ()) for one, other in pairs if one == upper and other != lower)
    ]
    return sorted(kept, key=lambda pair: (pair[1] - pair[0], pair))


def draw(root: Path) -> str:
    """Return the house as SVG."""
    rooms = floors(root)
    drawing = Drawing("The packages of cloudevents_kafka: each imports only what is below it")
    tops, bottoms, y = [], [], 4.0
    for names in rooms:
        tops.append(y)
        y = _floor(drawing, y, names)
        bottoms.append(y)
        y += 10
    lanes: list[list[tuple[int, int]]] = []
    for upper, lower in without_shortcuts(imports(rooms)):
        if lower == upper + 1:
            drawing.arrow((30, bottoms[upper]), (30, tops[lower]))
        else:
            x = _ROOMS_WIDTH + 16 + _LANE * _lane(lanes, (upper, lower))
            start, end = bottoms[upper] - 7, tops[lower] + 9
            drawing.arrow((_ROOMS_WIDTH + 4, start), (x, start), (x, end), (_ROOMS_WIDTH + 4, end))
    return drawing.to_svg(y)


def _floor(drawing: Drawing, top: float, names: list[str]) -> float:
    """Draw the rooms of a floor, and return the y of its lower edge."""
    lines = [""]
    for name in names:
        longer = f"{lines[-1]}  {name}".strip()
        if MONO * len(longer) > _ROOMS_WIDTH - 20:
            lines.append(name)
        else:
            lines[-1] = longer
    bottom = top + 17 * (len(lines) + 1) + 9
    drawing.box(4, top, _ROOMS_WIDTH, bottom - top)
    for number, line in enumerate(lines):
        drawing.text(14, top + 19 + 17 * number, line, "code strong")
    drawing.text(14, bottom - 9, CAPTIONS[names[0]], "soft")
    return bottom


def _lane(lanes: list[list[tuple[int, int]]], span: tuple[int, int]) -> int:
    """Return the number of the first lane in which nothing overlaps the span, and enter it there."""
    for number, taken in enumerate(lanes):
        if all(span[1] <= upper or span[0] >= lower for upper, lower in taken):
            taken.append(span)
            return number
    lanes.append([span])
    if _ROOMS_WIDTH + 16 + _LANE * len(lanes) > WIDTH:
        raise ValueError(f"the house must have at most {len(lanes) - 1} lanes of arrows, got one more")
    return len(lanes) - 1
