"""The budget of one datum of Avro: a limit for the values that its bytes may have.

A few bytes may have any number of values without bytes: nulls, ``fixed`` of size 0, and records that consist
of these. Arrays of them need no bytes for each value, and neither do schemas whose records double at each
level. A budget is for a whole datum. Values without bytes are counted from the schema, many at once; each
other value is one step.
"""

from __future__ import annotations

from typing import Final

from cloudevents_kafka.codecs.avro_binary import MalformedDatum

MAX_EMPTY_ITEMS: Final = 65_536
"""The maximum number of values without bytes in a datum; a longer datum may have one for each byte."""
FREE_STEPS: Final = 16_384
STEPS_PER_BYTE: Final = 32
"""A datum may have `FREE_STEPS` values, and `STEPS_PER_BYTE` more for each byte, as records may be nested."""
_FREE_OUTPUT: Final = 1 << 20


class BeyondBudget(MalformedDatum):
    """A datum has too many values; the text says which bound it exceeds."""


class Budget:
    """The numbers of values that one datum may still have."""

    __slots__ = ("_empties", "_output", "_size", "_steps")

    def __init__(self, size: int) -> None:
        self._size = size
        self._empties = max(MAX_EMPTY_ITEMS, size)
        self._steps = FREE_STEPS + STEPS_PER_BYTE * size
        self._output = _FREE_OUTPUT + STEPS_PER_BYTE * size

    def spend_empties(self, count: int) -> None:
        """Count values without bytes; raise `BeyondBudget`."""
        self._empties -= count
        if self._empties < 0:
            most = max(MAX_EMPTY_ITEMS, self._size)
            raise BeyondBudget(f"at most {most} items without bytes")

    def spend_step(self) -> None:
        """Count another value; raise `BeyondBudget`."""
        self._steps -= 1
        if self._steps < 0:
            most = FREE_STEPS + STEPS_PER_BYTE * self._size
            raise BeyondBudget(f"at most {most} values, for its {self._size} bytes")

    def spend_output(self, size: int) -> None:
        """Count bytes that a reader's defaults add; raise `BeyondBudget`."""
        self._output -= size
        if self._output < 0:
            most = _FREE_OUTPUT + STEPS_PER_BYTE * self._size
            raise BeyondBudget(f"at most {most} bytes of defaults")
