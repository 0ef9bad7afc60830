"""One run of a peer: all its ways, in memory and, where its client is compared, through a real broker."""

from __future__ import annotations

from typing import Final

from broker import PEERS, exchange_on
from build import build
from deviations import Tally, peers
from events import samples
from exchange import exchange, ways
from lines import Runner

from cloudevents_kafka.testing import LocalBroker

SEED: Final = 7
COUNT: Final = 2500
ON_BROKER: Final = 400


def run(peer: str, seed: int = SEED, count: int = COUNT, on_broker: int = ON_BROKER) -> Tally:
    """Exchange seeded events with a peer, each compared with what is declared of it."""
    program = build(peer)
    tally = Tally()
    events = list(samples(seed, count))
    known = ways(peers()[peer])
    with Runner(program) as runner:
        for way in known:
            tally.add(peer, exchange(runner, events, way))
    if peer in PEERS and on_broker:
        with LocalBroker() as broker:
            for way in known:
                tally.add(peer, exchange_on(broker, program, events[:on_broker], way))
    return tally
