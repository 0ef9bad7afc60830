"""One run of a peer: all its encodings, in memory and, for some peers, through a real broker."""

from __future__ import annotations

from typing import Final

from broker import PEERS, exchange_on
from build import build
from deviations import RunCounts, peers
from events import samples
from exchange import encodings, exchange
from lines import Runner

from cloudevents_kafka.testing import LocalBroker

SEED: Final = 7
COUNT: Final = 2500
ON_BROKER: Final = 400


def run(peer: str, seed: int = SEED, count: int = COUNT, on_broker: int = ON_BROKER) -> RunCounts:
    """Exchange seeded events with a peer and return the counts."""
    program = build(peer)
    counted = RunCounts()
    events = list(samples(seed, count))
    known = encodings(peers()[peer])
    with Runner(program) as runner:
        for encoding in known:
            counted.add(peer, exchange(runner, events, encoding))
    if peer in PEERS and on_broker:
        with LocalBroker() as broker:
            for encoding in known:
                counted.add(peer, exchange_on(broker, program, events[:on_broker], encoding))
    return counted
