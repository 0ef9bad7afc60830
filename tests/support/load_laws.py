"""What must hold for the records that members of a group have handled, through kills and outages.

A member notes the beginning and the end of each call of its handler that has succeeded, with the time of a
clock that all processes share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

SECONDS: Final = 1.0  # between two commits of a run
SLACK: Final = 2.0  # for a machine that is slow or busy


class Call(NamedTuple):
    """A call of the handler: the process, the key, the number of the record; no end if it was killed."""

    process: str
    key: str
    number: int
    begin: float
    end: float | None


class Outage(NamedTuple):
    """The time in which nothing is committed: of one process before its kill, or of all."""

    begin: float
    end: float
    process: str | None = None


def calls_of(lines: Iterable[str]) -> list[Call]:
    """Return the calls of lines "time process b|e key number", in the order of their beginnings."""
    begun: dict[tuple[str, int], tuple[str, float]] = {}
    calls: list[Call] = []
    for line in lines:
        time, process, what, key, number = line.split()
        if what == "b":
            begun[process, int(number)] = key, float(time)
        else:
            _, began = begun.pop((process, int(number)))
            calls.append(Call(process, key, int(number), began, float(time)))
    calls += [Call(process, key, number, began, None) for (process, number), (key, began) in begun.items()]
    return sorted(calls, key=lambda call: call.begin)


def faults(calls: Sequence[Call], numbers: dict[str, list[int]], outages: Sequence[Outage]) -> list[str]:
    """Return what does not hold; ``numbers`` has the records of each key, in the order of sending."""
    by_key: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_key[call.key].append(call)
    ends = {outage.process: outage.end for outage in outages if outage.process is not None}
    found: list[str] = []
    for key, expected in numbers.items():
        found += _lost(key, expected, by_key[key])
        found += _out_of_order(key, expected, by_key[key])
        found += _together(key, by_key[key], ends)
        found += _repeated(key, by_key[key], outages)
    return found


def _lost(key: str, expected: list[int], calls: list[Call]) -> list[str]:
    done = {call.number for call in calls if call.end is not None}
    return [f"{key}: {number} is lost" for number in expected if number not in done]


def _out_of_order(key: str, expected: list[int], calls: list[Call]) -> list[str]:
    """Return the records that began before one that was sent earlier had been handled."""
    first_end: dict[int, float] = {}
    for call in calls:
        if call.end is not None:
            first_end[call.number] = min(call.end, first_end.get(call.number, call.end))
    before = dict(zip(expected[1:], expected, strict=False))
    return [
        f"{key}: {call.number} began before {before[call.number]} had ended"
        for call in calls
        if call.number in before and not first_end.get(before[call.number], call.begin + 1) <= call.begin
    ]


def _together(key: str, calls: list[Call], killed: dict[str | None, float]) -> list[str]:
    """Return the calls that began while another one of the same key was on."""
    found = []
    for one, other in pairwise(calls):
        end = one.end if one.end is not None else killed.get(one.process, one.begin)
        if other.begin < end:
            found.append(f"{key}: {other.number} began in {other.process} while {one.number} was on")
    return found


def _repeated(key: str, calls: list[Call], outages: Sequence[Outage]) -> list[str]:
    """Return the repeats of what had been done long enough to be committed."""
    last: dict[int, Call] = {}
    found = []
    for call in calls:
        earlier = last.get(call.number)
        if earlier is not None and earlier.end is not None and not _is_excused(earlier, call, outages):
            found.append(
                f"{key}: {call.number} was done in {earlier.process} at {earlier.end:.2f}, "
                f"and again in {call.process} at {call.begin:.2f}"
            )
        if call.end is not None:
            last[call.number] = call
    return found


def _is_excused(earlier: Call, call: Call, outages: Sequence[Outage]) -> bool:
    assert earlier.end is not None
    return any(
        outage.process in (None, earlier.process)
        and outage.begin - SECONDS - SLACK <= earlier.end <= outage.end + SLACK
        and outage.begin <= call.begin
        for outage in outages
    )
