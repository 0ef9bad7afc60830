"""Text for people: what a terminal would obey or not show is a code, and nothing else is."""

from __future__ import annotations

import sys
import unicodedata

from cloudevents_kafka.cli.terminal.text import escape_json
from cloudevents_kafka.primitives.text_table import format_table
from cloudevents_kafka.primitives.visible import UNSAFE, escape
from tests.support.cases import each

# Default_Ignorable_Code_Point of Unicode 16, as first and last characters.
IGNORABLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    (0xE0000, 0xE0FFF),
)
IGNORED = {code for first, last in IGNORABLE for code in range(first, last + 1)}


def test_each_character_that_is_not_shown_is_a_code():
    """Controls, format characters, line separators, surrogates and ignorable ones are; no others."""
    for code in range(sys.maxunicode + 1):
        hidden = unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp") or code in IGNORED
        # A format character of a later Unicode is unassigned in the data of an older Python.
        assert (UNSAFE.match(chr(code)) is not None) == hidden or (
            not hidden and unicodedata.category(chr(code)) == "Cn"
        ), hex(code)


@each("code", [0x34F, 0x115F, 0x3164, 0x17B4, 0x180B, 0xFE0F, 0x600, 0x70F, 0x1D173, 0x9B, 0x1B, 0xD800])
def test_all_outputs_have_the_same_codes(code):
    """Text, tables and JSON show the code of the character, and not the character."""
    sign = chr(code)
    shown = escape(f"a{sign}b")
    assert shown == f"a{ascii(sign)[1:-1]}b"
    assert format_table(None, [[f"a{sign}b"]]) == f"  {shown}"
    assert sign not in escape_json(f'"{sign}"')
    assert escape(shown) == shown
