"""Exchange events with other SDKs: python spec-conformance/peers [PEER …].

The exit code is 1 if a run finds a difference that deviations.json does not declare, or does not
find a declared one. ``--write`` writes the counts to results.json and ../peers.md. ``--samples``
exchanges nothing, and keeps a sample of what each peer writes in ../samples.
"""

from __future__ import annotations

import argparse
import sys
import time

from build import BuildFailed, MissingToolchain
from deviations import RunCounts, peers
from exchange import Exchange
from kept import README, page, write_samples
from report import counts, results, write
from run import COUNT, ON_BROKER, SEED, run


def main(arguments: list[str]) -> int:
    """Run the named peers, or all, and return the exit code."""
    parser = argparse.ArgumentParser(prog="spec-conformance/peers", description=__doc__)
    parser.add_argument(
        "peers", nargs="*", metavar="PEER", help=f"one of {', '.join(peers())} (default: all)"
    )
    parser.add_argument(
        "--count", type=int, default=COUNT, help="events in memory for each encoding (%(default)s)"
    )
    parser.add_argument(
        "--on-broker",
        type=int,
        default=ON_BROKER,
        help="events through a broker for each encoding (%(default)s)",
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--write", action="store_true", help="write the counts and peers.md")
    parser.add_argument("--samples", action="store_true", help="write ../samples again, and exchange nothing")
    options = parser.parse_args(arguments)
    unknown = set(options.peers) - set(peers())
    if unknown:
        parser.error(f"PEER must be one of {', '.join(peers())}, got {', '.join(sorted(unknown))}")
    if options.samples:
        return keep_samples(options.peers or list(peers()))
    is_default = (options.seed, options.count, options.on_broker) == (SEED, COUNT, ON_BROKER)
    runs: dict[str, RunCounts] = {}
    failed = False
    for peer in options.peers or peers():
        began = time.monotonic()
        try:
            counted = run(peer, options.seed, options.count, options.on_broker)
        except MissingToolchain as error:
            print(f"{peer}: skipped: {error}")
            failed = failed or options.write
            continue
        except BuildFailed as error:
            print(f"{peer}: {error}")
            failed = True
            continue
        runs[peer] = counted
        print(
            f"{peer}: {counted.exchanged.total()} exchanges, {counted.equal.total()} without a difference, "
            f"{len(counted.surprises)} not as declared, {time.monotonic() - began:.0f} s"
        )
        failed |= print_surprises(peer, counted)
        if not options.write and is_default and counts(counted) != results()["peers"].get(peer):
            print(f"  {peer}: the counts differ from results.json; find out why, then run with --write")
            failed = True
    if options.write and not failed:
        write(runs, options.seed)
    return int(failed)


def keep_samples(names: list[str]) -> int:
    """Write the samples of peers and their page, and return the exit code."""
    try:
        for peer in names:
            write_samples(peer)
    except (MissingToolchain, BuildFailed) as error:
        print(f"{peer}: {error}")
        return 1
    README.write_text(page(), encoding="utf-8")
    return 0


def print_surprises(peer: str, counted: RunCounts) -> bool:
    """Print undeclared differences, with one event of each kind; return whether there are any."""
    kinds: dict[tuple[object, ...], list[Exchange]] = {}
    for one, wanted in counted.surprises:
        kind = one.direction, one.encoding, one.findings - wanted, wanted - one.findings
        kinds.setdefault(kind, []).append(one)
    for (direction, encoding, more, less), exchanges in kinds.items():
        common = frozenset.intersection(*(one.sample.features for one in exchanges))
        plural = "" if len(exchanges) == 1 else "s"
        print(f"  {peer} {direction} {encoding}: {len(exchanges)} event{plural}")
        print(
            f"    found: {_listed(more)}\n    not found: {_listed(less)}\n"
            f"    common features: {_listed(common)}"
        )
        print(f"    error: {exchanges[0].error}\n    example: {exchanges[0].sample}")
    for entry in counted.not_found(peer):
        print(f"  {entry} is declared, but was not found")
    return bool(counted.surprises or counted.not_found(peer))


def _listed(words: object) -> str:
    return ", ".join(sorted(words)) if isinstance(words, frozenset) and words else "as declared"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
