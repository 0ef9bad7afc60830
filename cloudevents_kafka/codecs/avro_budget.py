"""The budget of one Avro datum: limits for the number of values that its bytes may encode.

A few bytes may encode any number of values that themselves take no bytes: nulls, ``fixed`` of size 0, and
records that consist of such values. For example, a few bytes may encode an array of a million nulls, or
nested records whose number doubles at each level. Each datum, with all nested values, has one budget. Values
that take no bytes are counted several at a time; the schema says how many there are. Every other value is
counted separately, as one step.
"""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.codecs.avro_binary import MalformedDatum

MAX_EMPTY_ITEMS: Final = 65_536
"""The maximum number of values that take no bytes.

A datum with more bytes than this number may contain one such value for each byte.
"""
FREE_STEPS: Final = 16_384
STEPS_PER_BYTE: Final = 32
"""The limit for values: this number for each byte of a datum, plus `FREE_STEPS`."""
FREE_BYTES: Final = 1 << 20
"""The limit for bytes that defaults add to a datum: this number, plus 32 for each byte of the datum."""


class BeyondBudget(MalformedDatum):
    """A datum contains too many values; the error text states the limit that is exceeded."""


class Budget:
    """How many values may still be read from one datum, and how many bytes defaults may still add."""

    __slots__ = ("_empties", "_output", "_size", "_steps")

    def __init__(self, size: int) -> None:
        self._size = size
        self._empties = max(MAX_EMPTY_ITEMS, size)
        self._steps = FREE_STEPS + STEPS_PER_BYTE * size
        self._output = FREE_BYTES + STEPS_PER_BYTE * size

    def spend_empties(self, count: int) -> None:
        """Count values that take no bytes; raise `BeyondBudget` if the datum has too many of them."""
        self._empties -= count
        if self._empties < 0:
            most = max(MAX_EMPTY_ITEMS, self._size)
            raise BeyondBudget(f"at most {most} items without bytes")

    def spend_step(self) -> None:
        """Count one value that has bytes; raise `BeyondBudget` if the datum has too many of these values."""
        self._steps -= 1
        if self._steps < 0:
            most = FREE_STEPS + STEPS_PER_BYTE * self._size
            raise BeyondBudget(f"at most {most} values, for its {self._size} bytes")

    def spend_output(self, size: int) -> None:
        """Count the bytes that a schema's default values add; raise `BeyondBudget` for too many bytes."""
        self._output -= size
        if self._output < 0:
            most = FREE_BYTES + STEPS_PER_BYTE * self._size
            raise BeyondBudget(f"at most {most} bytes of defaults")
