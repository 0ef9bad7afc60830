"""The flow of a record: from Kafka to a handler, or to dead letters."""

from __future__ import annotations

from pathlib import Path

from _drawing import WIDTH, Drawing

from cloudevents_kafka.errors import (
    BrokenData,
    BrokenEvent,
    DecodeError,
    NotAnEvent,
    UnsupportedBatch,
    UnsupportedFormat,
)
from cloudevents_kafka.formats import registry as formats

_MAIN = 242  # the width of the way of a good record
_MODE = 117  # of the cards of the two modes
_BAD = WIDTH - 8  # where the way of bad records goes down
_GAP = 18


def draw(_root: Path) -> str:
    """Return the flow as SVG."""
    drawing = Drawing("A record becomes an event, which a handler receives, or it becomes a dead letter")
    y = drawing.card(4, 4, _MAIN, ["a record of Kafka", "key, value, headers"])
    y = _step(drawing, y, ["`sniff", "the content-type header decides"])
    first = _branch(drawing, y, NotAnEvent, UnsupportedFormat, UnsupportedBatch)
    y = _modes(drawing, y)
    y = _step(drawing, y, ["the rules", "all of them; each problem has", "its clause"])
    _branch(drawing, y, BrokenEvent)
    y = _step(drawing, y, ["`Event", "its data is decoded by a codec,", "when it is first used"], fill="fine")
    _branch(drawing, y, BrokenData)
    y = _step(drawing, y, ["your handler", "called again after an error:", "tries, backoff"], fill="fine")
    _branch(drawing, y, "all tries failed")
    y = _step(drawing, y, ["the offset is committed", "when all before it are done"], fill="fine")
    drawing.arrow((_BAD, first), (_BAD, y + _GAP))
    y = drawing.card(
        4,
        y + _GAP,
        WIDTH - 8,
        [
            "on_failure decides",
            '"fail": the error is raised, and the loop ends',
            '"skip": the record is counted and logged',
            "DeadLetters: the record goes to their topic,",
            "as it was; then its offset is committed",
        ],
        fill="poor",
    )
    drawing.arrow((44, y), (44, y + _GAP))
    lines = ["`cloudevents-kafka replay", "sends dead letters back, or to another topic"]
    return drawing.to_svg(drawing.card(4, y + _GAP, WIDTH - 8, lines) + 4)


def _step(drawing: Drawing, y: float, lines: list[str], *, fill: str = "room") -> float:
    """Draw a step of the way below ``y``, and return the y of its lower edge."""
    drawing.arrow((44, y), (44, y + _GAP))
    return drawing.card(4, y + _GAP, _MAIN, lines, fill=fill)


def _modes(drawing: Drawing, y: float) -> float:
    """Draw the two ways to read a record, and return the y at which they end."""
    names = [f"`{name}" for name in formats.names() if name != "avrocompact"]  # it is for one SDK only
    cards = [
        ["binary mode", "attributes in", "ce_ headers,", "the payload in", "the value"],
        ["structured", "a format reads", "the value:", *names],
    ]
    lefts = 4, 4 + _MAIN - _MODE
    bottoms = []
    for left, lines in zip(lefts, cards, strict=True):
        drawing.arrow((left + 40, y), (left + 40, y + _GAP))
        bottoms.append(drawing.card(left, y + _GAP, _MODE, lines))
    end = max(bottoms)
    for left, bottom in zip(lefts, bottoms, strict=True):
        drawing.line((left + 40, bottom), (left + 40, end + 6))
    drawing.line((lefts[1] + 40, end + 6), (44, end + 6))
    return end + 6


def _branch(drawing: Drawing, bottom: float, *reasons: type[DecodeError] | str) -> float:
    """Draw the way of records that do not pass the step above, and return its y.

    The texts are those of ``error.verdict``.
    """
    y = bottom - 34
    drawing.line((4 + _MAIN, y), (_BAD, y))
    for number, reason in enumerate(reasons):
        text = reason if isinstance(reason, str) else reason.verdict
        drawing.text(_BAD - 6, y + 17 + 16 * number, text, "bad", anchor="end")
    return y
