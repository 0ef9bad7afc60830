"""A landed topic: the folders, and how the counts of a batch add up."""

from __future__ import annotations

from pathlib import Path

from _drawing import WIDTH, Drawing

from cloudevents_kafka.spark.pipeline.landing._parquet_target import STAGING
from cloudevents_kafka.spark.pipeline.notes import CHECKPOINT
from cloudevents_kafka.spark.pipeline.notes._manifests import BATCHES
from cloudevents_kafka.spark.pipeline.notes._routes import EVENTS, QUARANTINE

_RECORDS = "eeqeeeqe"  # events, and records for the quarantine
_KINDS = {"e": ("fine", "good"), "q": ("poor", "bad")}


def draw(_root: Path) -> str:
    """Return the folder of a pipeline as SVG."""
    drawing = Drawing("Where the records of a topic land: tables of events and of other records, and notes")
    drawing.text(4, 18, "one partition of the topic orders", "strong")
    cell = (WIDTH - 8) / len(_RECORDS)
    for offset, kind in enumerate(_RECORDS):
        fill, edge = _KINDS[kind]
        drawing.box(4 + cell * offset + 1, 28, cell - 2, 26, fill=fill, edge=edge)
        drawing.text(4 + cell * (offset + 0.5), 46, str(offset), edge, anchor="middle")
    good, bad = _RECORDS.count("e"), _RECORDS.count("q")
    drawing.text(4, 72, f"a batch: offsets 0 to {len(_RECORDS) - 1}", "soft")
    drawing.arrow((200, 62), (200, 88))
    y = drawing.card(
        4,
        88,
        WIDTH - 8,
        [
            f"{good} events + {bad} others = {len(_RECORDS)} records",
            "only if the counts match does the batch land",
        ],
    )
    drawing.arrow((200, y), (200, y + 24))
    drawing.text(4, y + 38, "the folder --out", "strong")
    y += 50
    trunk = y
    for name, fill, lines in _folders():
        middle = y + 15
        drawing.line((10, middle), (26, middle))
        y = drawing.card(26, y, WIDTH - 30, [f"`{name}/", *lines], fill=fill) + 8
    drawing.line((10, trunk - 6), (10, middle))
    return drawing.to_svg(y)


def _folders() -> list[tuple[str, str, list[str]]]:
    """Return each folder: its name, its colour and what is in it."""
    parts = ["`  record_date=2026-11-23/", "`    batch-00000000-part-….parquet"]
    return [
        (
            EVENTS,
            "fine",
            [
                *parts,
                "a row for each event: id, source, type, time,",
                "extensions, data, topic, partition, offset, …",
            ],
        ),
        (
            QUARANTINE,
            "poor",
            [
                *parts,
                "a row for each other record: the error,",
                "and its key, value and headers as they were",
            ],
        ),
        (
            BATCHES,
            "room",
            ["`  beginning.json", "`  00000000.json", "the notes: offsets, ids of topics, counts"],
        ),
        (CHECKPOINT, "room", ["Spark's checkpoint"]),
        (STAGING, "room", ["files of a batch before it lands"]),
    ]
