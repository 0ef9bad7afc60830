"""The table of accepted deviations, which the Java function reads, too."""

from __future__ import annotations

import re
from pathlib import Path

from cloudevents_kafka.spark.java.deviations import DEVIATIONS

SOURCES = Path(__file__).parents[3] / "java"


def _java() -> str:
    return "\n".join(path.read_text("utf-8") for path in sorted(SOURCES.glob("*.java")))


def test_java_names_each_rule_by_its_id() -> None:
    """Each id of the table is in the sources of the Java function."""
    assert {name for name in DEVIATIONS if f'"{name}"' not in _java()} == set()


def test_java_has_no_text_of_a_rule() -> None:
    """A text of a rule is in Python only."""
    literals = " ".join(re.findall(r'"([^"\n]*)"', _java()))
    assert [rule for rule, _ in DEVIATIONS.values() if rule.strip() in literals] == []


def test_rules_are_lines() -> None:
    """No text has a character that ends it in the argument of the Java function."""
    texts = [*DEVIATIONS, *(text for pair in DEVIATIONS.values() for text in pair)]
    assert [text for text in texts if set(text) & set("\n'\\")] == []
