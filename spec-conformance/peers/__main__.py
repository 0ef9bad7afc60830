"""Exchange events with the other SDKs, all or those named: python spec-conformance/peers [PEER …].

Exit code 1 for anything that is not declared in deviations.json, or declared and not seen.
``--write`` keeps the counts in results.json and makes ../peers.md of it.
"""

from __future__ import annotations

import argparse
import sys
import time

from build import BuildFailed, MissingToolchain
from deviations import Tally, peers
from exchange import Exchange
from report import counts, results, write
from run import COUNT, ON_BROKER, SEED, run


def main(arguments: list[str]) -> int:
    """Run the peers named, or all; 0 if each did what is declared of it, and nothing else."""
    parser = argparse.ArgumentParser(prog="spec-conformance/peers", description=__doc__)
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"of {', '.join(peers())}; all by default")
    parser.add_argument(
        "--count", type=int, default=COUNT, help="events in memory, on each way (%(default)s)"
    )
    parser.add_argument(
        "--on-broker", type=int, default=ON_BROKER, help="events on each way through a broker (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--write", action="store_true", help="keep the counts, and make peers.md of them")
    options = parser.parse_args(arguments)
    unknown = set(options.peers) - set(peers())
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    as_kept = (options.seed, options.count, options.on_broker) == (SEED, COUNT, ON_BROKER)
    tallies: dict[str, Tally] = {}
    failed = False
    for peer in options.peers or peers():
        began = time.monotonic()
        try:
            tally = run(peer, options.seed, options.count, options.on_broker)
        except MissingToolchain as error:
            print(f"{peer}: skipped: {error}")
            failed = failed or options.write
            continue
        except BuildFailed as error:
            print(f"{peer}: {error}")
            failed = True
            continue
        tallies[peer] = tally
        print(f"{peer}: {tally.exchanged.total()} exchanges, {tally.alike.total()} without any difference, "
              f"{len(tally.surprises)} not as declared, {time.monotonic() - began:.0f} s")  # fmt: skip
        failed |= tell(peer, tally)
        if not options.write and as_kept and counts(tally) != results()["peers"].get(peer):
            print(f"  {peer}: the counts are not those of results.json: look why, then run with --write")
            failed = True
    if options.write and not failed:
        write(tallies, options.seed)
    return int(failed)


def tell(peer: str, tally: Tally) -> bool:
    """Print what was not as declared, one event for each kind of it; tell whether anything was."""
    kinds: dict[tuple[object, ...], list[Exchange]] = {}
    for one, wanted in tally.surprises:
        kind = one.direction, one.way, one.findings - wanted, wanted - one.findings
        kinds.setdefault(kind, []).append(one)
    for (direction, way, more, less), alike in kinds.items():
        common = frozenset.intersection(*(one.sample.features for one in alike))
        print(f"  {peer} {direction} {way}: {len(alike)} events")
        print(f"    found: {_listed(more)}\n    not found: {_listed(less)}\n    all are: {_listed(common)}")
        print(f"    said: {alike[0].said}\n    one is: {alike[0].sample}")
    for entry in tally.unseen(peer):
        print(f"  {entry} is declared and was not seen")
    return bool(tally.surprises or tally.unseen(peer))


def _listed(words: object) -> str:
    return ", ".join(sorted(words)) if isinstance(words, frozenset) and words else "as declared"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
