"""Reading and writing events of many shapes, compared with the cloudevents SDK, in one process.

Each row has the median times, the ratio (the median over the rounds of their time divided by
ours) and the target. "*" marks a record that the SDK cannot read: it reads the nearest that it
can. At the end are the lowest ratio, the slowest twentieth (the median of the lowest 5 %) and the
median of each group. Both sides use the key of the record; the SDK always reads the data.

--against PATH times an older checkout of this library by turns with this one, each in a process
of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from importlib.metadata import version
from itertools import pairwise

from _growth import growth
from _other_checkout import Worker, serve, times_by_turns
from _peer_samples import Sample, peer_samples, time_in_order, time_repeatedly
from _shapes import GROUPS, Shape, shapes
from _timing import calls_for, ratio_of, time_by_turns

_WIDTH = 48
_PROCESSES = 5


def main() -> None:
    """Print the tables that the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=151)
    parser.add_argument("--seconds", type=float, default=0.0002, help="of calls in a turn")
    parser.add_argument("--only", nargs="+", metavar="TABLE", default=[*GROUPS, "peers", "growth"])
    parser.add_argument("--against", metavar="PATH", help="an older checkout of this library")
    parser.add_argument("--no-keys", action="store_true", help="records have no keys, and none are set")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    chosen = [shape for shape in shapes(keys=not options.no_keys) if shape.group in options.only]
    if options.worker:
        serve({f"{shape.group} {shape.name}": shape.ours for shape in chosen})
        return
    python = sys.version.split()[0]
    print(f"cloudevents {version('cloudevents')}, Python {python}, load {os.getloadavg()[0]:.1f}")
    if options.against:
        print_against(options.against, chosen, options.rounds, options.seconds)
    else:
        print_shapes(chosen, options.rounds, options.seconds)
        if "peers" in options.only:
            print_peers(options.rounds)
        if "growth" in options.only:
            print_growth(options.rounds, options.seconds)
    print(f"load {os.getloadavg()[0]:.1f}")


def print_shapes(chosen: list[Shape], rounds: int, seconds: float) -> None:
    """Print a row for each shape and each group."""
    summary: list[str] = []
    for name, group in GROUPS.items():
        ratios: list[float] = []
        for shape in (shape for shape in chosen if shape.group == name):
            if not ratios:
                print(
                    f"\n{group.title:<{_WIDTH}} {'ours':>11} {group.other:>11} {'ratio':>8}  {rounds} rounds"
                )
            calls, their_calls = calls_for(shape.ours, seconds), calls_for(shape.theirs, seconds)
            ours, theirs = time_by_turns(
                shape.ours, shape.theirs, rounds=rounds, calls=calls, their_calls=their_calls
            )
            ratios.append(ratio_of(ours, theirs))
            print(row(shape.name + " *" * shape.is_nearest, ours, theirs, group.each), flush=True)
        if ratios:
            summary.append(group_row(group.title, ratios, group.each, group.median))
    if summary:
        print(f"\n{'':<{_WIDTH}} {'shapes':>6} {'lowest':>7} {'twentieth':>9} {'median':>7}")
        print(*summary, sep="\n", flush=True)


def row(name: str, ours: list[float], theirs: list[float], target: float | None) -> str:
    """Return a line: medians in microseconds, the ratio, and the target if there is one."""
    own, other, ratio = statistics.median(ours), statistics.median(theirs), ratio_of(ours, theirs)
    return f"{name:<{_WIDTH}} {own * 1e6:8.2f} us {other * 1e6:8.2f} us {ratio:7.2f}x{verdict(ratio, target)}"


def group_row(name: str, ratios: list[float], each: float | None, median: float | None) -> str:
    """Return a line: the lowest ratio, that of the slowest twentieth, and the median."""
    found = statistics.median(ratios)
    twentieth = slowest_twentieth(ratios)
    line = f"{name:<{_WIDTH}} {len(ratios):6} {min(ratios):6.2f}x {twentieth:8.2f}x {found:6.2f}x"
    if each is not None:
        line += f"  each{verdict(min(ratios), each)}"
    return line + (f"  median{verdict(found, median)}" if median is not None else "")


def slowest_twentieth(ratios: list[float]) -> float:
    """Return the median of the lowest 5 % of ratios, at least of one."""
    return statistics.median(sorted(ratios)[: max(1, round(len(ratios) / 20))])


def verdict(ratio: float, target: float | None) -> str:
    """Return the target and whether it is met."""
    if target is None:
        return ""
    return f"  target {target:g}x {'met' if ratio >= target else 'MISSED'}"


def print_peers(rounds: int) -> None:
    """Print the ratios of what the other SDKs wrote: records read repeatedly, and in the order of a topic.

    Records that only lenient reading accepts have its targets, and are not in the row of their peer.
    """
    print(f"\n{'read what each SDK wrote':<{_WIDTH}} {'records':>7} {'twentieth':>10} {'median':>7}")
    for name, samples in by_encoding([*peer_samples()]):
        ratios = time_repeatedly(samples, max(5, rounds // 15))
        middle, slowest = statistics.median(ratios), slowest_twentieth(ratios)
        targets = (3, 2) if samples[0].is_event else (GROUPS["producers"].median, GROUPS["producers"].each)
        found = f"{len(samples):7} {slowest:9.2f}x {middle:6.2f}x"
        found += f"  twentieth{verdict(slowest, targets[1])}  median{verdict(middle, targets[0])}"
        ours, theirs = time_in_order(samples, max(5, rounds // 5))
        ratio = statistics.median(other / own for own, other in zip(ours, theirs, strict=True))
        times = f"{statistics.median(ours) * 1e6:.2f} us, {ratio:.2f}x"
        print(f"{name:<{_WIDTH}} {found}  in order: {times}", flush=True)


def by_encoding(samples: list[Sample]) -> Iterator[tuple[str, list[Sample]]]:
    """Yield a title and the records of each peer, then those of each of its encodings."""
    for peer in dict.fromkeys(sample.peer for sample in samples):
        own = [sample for sample in samples if sample.peer == peer]
        yield peer, [sample for sample in own if sample.is_event]
        for encoding in dict.fromkeys(sample.encoding for sample in own):
            yield f"  {encoding}", [sample for sample in own if sample.encoding == encoding]


def print_growth(rounds: int, seconds: float) -> None:
    """Print the times for 1 to 1,000 parts, and what each of the last parts takes: the same for both."""
    parts = f"{'1':>8} {'10':>9} {'100':>9} {'1,000':>9} us   ns each: to 100, to 1,000"
    print(f"\n{'growth, with the number of parts':<{_WIDTH}} {parts}")
    for name, works in growth():
        times = []
        for work in works:
            own, _ = time_by_turns(work, work, rounds=max(5, rounds // 8), calls=calls_for(work, seconds))
            times.append(min(own))
        steps = zip(pairwise(times[1:]), (90, 900), strict=True)
        each = [(after - before) / count * 1e9 for (before, after), count in steps]
        line = " ".join(f"{one * 1e6:9.2f}" for one in times)
        print(f"{name:<{_WIDTH}}{line}      {each[0]:8.0f} {each[1]:8.0f}", flush=True)


def print_against(path: str, chosen: list[Shape], rounds: int, seconds: float) -> None:
    """Print the ratios of an older checkout; plain shapes have a target of 0.95.

    The place of objects in memory changes the speed of a process by some percent, so there are
    five processes of each checkout.
    """
    times: dict[str, list[list[float]]] = {f"{shape.group} {shape.name}": [[], []] for shape in chosen}
    for _ in range(_PROCESSES):
        with Worker(None) as own, Worker(path) as other:
            locations = f"ours: {own.location}\nolder: {other.location}"
            for shape, both in zip(chosen, times.values(), strict=True):
                calls, key = calls_for(shape.ours, seconds), f"{shape.group} {shape.name}"
                turns = times_by_turns(own, other, key, rounds=rounds // _PROCESSES, calls=calls)
                for collected, found in zip(both, turns, strict=True):
                    collected.extend(found)
    print(f"{locations}\n\n{'':<{_WIDTH}} {'ours':>11} {'older':>11} {'ratio':>8}  {rounds} rounds")
    for name, group in GROUPS.items():
        ratios: list[float] = []
        for shape in (shape for shape in chosen if shape.group == name):
            key = f"{shape.group} {shape.name}"
            ours, theirs = times[key]
            if not theirs:
                print(f"{key:<{_WIDTH}} the older checkout cannot do it")
                continue
            ratios.append(statistics.median(theirs) / statistics.median(ours))
            print(row(key, ours, theirs, 0.95 if shape.is_plain else None), flush=True)
        if ratios:
            print(group_row(f"-- {group.title}", ratios, None, None) + "\n")


if __name__ == "__main__":
    main()
