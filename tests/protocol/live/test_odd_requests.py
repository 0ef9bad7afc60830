"""The emulated releases answer odd requests as the real brokers do."""

from __future__ import annotations

import inspect
import itertools
from typing import NamedTuple

import pytest

from tests.support.wire_broker import RELEASES, WireBroker

from .odd import fetch_cases, frame_cases, group_cases, produce_cases, topic_cases
from .odd.asking import Asking, NotHereError

EMULATED = {
    "0.8.2-beta": "0.8.2-beta",
    "0.8.2.2": "0.8.2",
    "0.9.0.1": "0.9",
    "0.10.2.2": "0.10",
    "1.1.1": "1.1",
    "3.9.1": "3.9",
    "4.3.1": "4.3",
}
CASES = {
    f"{module.__name__.rpartition('.')[2].removesuffix('_cases')}-{case.__name__}".replace("_", "-"): case
    for module in (frame_cases, topic_cases, produce_cases, fetch_cases, group_cases)
    for case in vars(module).values()
    if inspect.isgeneratorfunction(case)
}
SAMPLE = {
    "frame-bytes-after-a-request",
    "frame-names-of-software",
    "frame-topic-that-is-no-text",
    "frame-tags-of-a-message",
    "frame-lengths-that-do-not-fit",
    "topic-colliding-names",
    "topic-created-twice-in-one-request",
    "topic-settings-of-topics",
    "produce-overlapping-sequence",
    "produce-transactional-batch-without-id",
    "produce-zstd-before-version-7",
    "fetch-special-times-in-each-version",
    "group-join-without-protocols",
    *itertools.islice(CASES, 0, None, 8),
}

DIFFERENT = {
    # Each release has its own way to end a connection on a header that is cut or unknown.
    "frame-short-frames": ["0.10.2.2"],
    "frame-unknown-apis": ["0.9.0.1"],
    # Brokers with a ZooKeeper create partitions on brokers that do not exist, and wait for them.
    "topic-assigned-replicas": ["0.10.2.2", "1.1.1"],
    # Old brokers store messages of any magic, or fail on them.
    "produce-odd-magic-of-messages": ["0.8.2-beta", "0.8.2.2", "0.9.0.1", "0.10.2.2"],
    "produce-wrong-sizes": ["1.1.1"],
}
"""The cases in which a release is not emulated, and why."""

_runs = itertools.count()


class Node(NamedTuple):
    """Where a broker listens."""

    id: int
    host: str
    port: int


def outcomes(node, release, name, prefix="odd"):
    """Return the outcomes of a case."""
    found = []
    with Asking(node, release, f"{prefix}-first") as ask:  # 0.8.2 lists no broker before the first topic
        ask.topic()
    with Asking(node, release, f"{prefix}-{name}") as ask:
        try:
            found.extend(CASES[name](ask))
        except NotHereError:
            found.append("the release does not have the version")
    return found


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(sorted(SAMPLE), id="some"),
        pytest.param(sorted(CASES), id="all", marks=[pytest.mark.release, pytest.mark.timeout(600)]),
    ],
)
def test_odd_requests_have_the_same_outcome(kafka, names):
    """Each case has the same responses, errors and closed connections, but for those that are listed."""
    host, port = kafka.servers.split(":")
    release = RELEASES[EMULATED[kafka.version]]
    prefix = f"odd{next(_runs)}"
    with WireBroker(release) as broker:
        for name in names:
            real = outcomes(Node(1, host, int(port)), release, name, prefix)
            ours = outcomes(broker.nodes[0], release, name, prefix)
            if kafka.version in DIFFERENT.get(name, ()):
                assert ours != real, f"{name} is not different"
            else:
                assert ours == real, name


@pytest.mark.release
def test_there_are_enough_requests():
    """The newest release is asked hundreds of odd requests, the oldest more than a hundred."""
    for release, least in (("4.3", 600), ("0.8.2", 150)):
        with WireBroker(release) as broker:
            found = [outcomes(broker.nodes[0], RELEASES[release], name) for name in CASES]
        assert sum(map(len, found)) >= least
