"""Which broker is played: what it takes, what it says it takes, how it refuses.

The ranges are what real brokers listed, or answered; so are their oddities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import Versions


class Dialect(NamedTuple):
    """The versions that a broker takes, by API key, and its ways.

    ``listed`` is what ApiVersions tells where that is not the truth. Where an API is in
    ``clamped``, requests of a newer version are read in the newest that the broker knows, and so
    answered. A request that cannot be read ends the connection, unless the broker is ``mute``.
    ``magic`` is the form that the log has: what is older is converted when it is appended.
    """

    name: str
    versions: Mapping[int, Versions]
    listed: Mapping[int, Versions]
    magic: int = 2
    clamped: frozenset[int] = frozenset()
    mute: bool = False
    ignores_rest: bool = False
    """Bytes behind a request's last field are passed over."""
    beta_commits: bool = False
    """OffsetCommit 0 has the guide's layout, with a time stamp."""
    zookeeper: bool = False
    """Version 0 of OffsetCommit and OffsetFetch has a store of its own."""
    lists_itself: bool = False
    """The refusal of an ApiVersions version tells which there are."""
    many_acks: bool = False
    """Acks above 1 wait for so many replicas, in vain; later brokers refuse them."""

    def with_versions(self, versions: Mapping[int, str]) -> Dialect:
        """Change some APIs' versions, in the notation of `Versions`; "none" takes an API away."""
        changed = {key: Versions.parse(text) for key, text in versions.items()}
        return self._replace(versions=_merged(self.versions, changed), listed=_merged(self.listed, changed))


def _merged(versions: Mapping[int, Versions], changed: Mapping[int, Versions]) -> Mapping[int, Versions]:
    merged = {**versions, **changed}
    return {key: merged[key] for key in sorted(merged) if merged[key].first <= merged[key].last}


def _ranges(newest: Mapping[int, int], oldest: Mapping[int, int] | None = None) -> dict[int, Versions]:
    first = oldest or {}
    return {key: Versions(first.get(key, 0), last).common(APIS[key].versions) for key, last in newest.items()}


_V0_8: Final = _ranges({0: 0, 1: 0, 2: 0, 3: 0, 8: 1, 9: 1, 10: 0})
_V0_9: Final = _ranges({0: 1, 1: 1, 2: 0, 3: 0, 8: 2, 9: 1, 10: 0, 11: 0, 12: 0, 13: 0, 14: 0})
_V0_10: Final = _ranges(
    {0: 2, 1: 3, 2: 1, 3: 2, 8: 2, 9: 2, 10: 0, 11: 1, 12: 0, 13: 0, 14: 0, 17: 0, 18: 0, 19: 1}
)
_V1_1: Final = _ranges(
    {0: 5, 1: 7, 2: 2, 3: 5, 8: 3, 9: 3, 10: 1, 11: 2, 12: 1, 13: 1, 14: 1, 17: 1, 18: 1, 19: 2, 22: 0, 36: 0}
)
_V3_9: Final = _ranges(
    {
        0: 11,
        1: 17,
        2: 9,
        3: 12,
        8: 9,
        9: 9,
        10: 6,
        11: 9,
        12: 4,
        13: 5,
        14: 5,
        17: 1,
        18: 4,
        19: 7,
        22: 5,
        36: 2,
    }
)
_V4_3: Final = _ranges(
    {
        0: 13,
        1: 18,
        2: 11,
        3: 13,
        8: 10,
        9: 10,
        10: 6,
        11: 9,
        12: 4,
        13: 5,
        14: 5,
        17: 1,
        18: 4,
        19: 7,
        22: 5,
        36: 2,
    },
    {0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2},
)
_CLAMPED: Final = frozenset({0, 1, 3})

DIALECTS: Final = {
    dialect.name: dialect
    for dialect in (
        Dialect("0.8.2-beta", _V0_8, {}, 0, _CLAMPED, ignores_rest=True, beta_commits=True, many_acks=True),
        Dialect("0.8.2", _V0_8, {}, 0, _CLAMPED, ignores_rest=True, zookeeper=True, many_acks=True),
        Dialect("0.9", _V0_9, {}, 0, _CLAMPED, mute=True, ignores_rest=True, zookeeper=True),
        Dialect("0.10", _V0_10, _V0_10, 1, ignores_rest=True, zookeeper=True),
        Dialect("1.1", _V1_1, _V1_1, ignores_rest=True, zookeeper=True),
        Dialect("3.9", _V3_9, _V3_9, lists_itself=True),
        # KAFKA-18659: Produce 0 to 2 are listed for the sake of librdkafka, and refused.
        Dialect("4.3", _V4_3, {**_V4_3, 0: Versions(0, 13)}, lists_itself=True),
    )
}
"""The brokers that can be played, by name; the ``.2-beta`` is the one that speaks as the 0.8 guide does."""


def dialect_of(plays: str | Dialect) -> Dialect:
    """Find a dialect by name; ValueError for a name that is none."""
    if isinstance(plays, Dialect):
        return plays
    if plays not in DIALECTS:
        raise ValueError(f"there is no broker {plays!r} to play; there are {', '.join(DIALECTS)}")
    return DIALECTS[plays]
