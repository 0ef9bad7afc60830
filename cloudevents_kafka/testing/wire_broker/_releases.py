"""The releases of Kafka that can be emulated: their API versions, and how they refuse others.

The ranges were listed, or answered, by real brokers; so were their oddities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import Versions


class Release(NamedTuple):
    """A release: the API versions that its broker accepts, by API key, and its behaviour.

    A request that the broker cannot read ends the connection, unless ``drops_unreadable``.
    """

    name: str
    versions: Mapping[int, Versions]
    advertised: Mapping[int, Versions]
    """The ranges that ApiVersions lists, which differ from ``versions`` in 4.x."""
    magic: int = 2
    """The message format of the log; older formats are converted when they are appended."""
    clamped_apis: frozenset[int] = frozenset()
    """APIs whose requests of newer versions are read, and answered, in the newest that it has."""
    drops_unreadable: bool = False
    ignores_trailing_bytes: bool = False
    """Whether bytes after the last field of a request are ignored."""
    beta_offset_commit: bool = False
    """Whether OffsetCommit 0 has the layout of the 0.8 guide, with a timestamp."""
    zookeeper: bool = False
    """Whether version 0 of OffsetCommit and OffsetFetch uses a separate store."""
    lists_api_versions: bool = False
    """Whether error 35 to an ApiVersions request lists the versions of ApiVersions."""
    accepts_any_acks: bool = False
    """Whether acks above 1 wait for that many replicas; later brokers refuse them."""

    def with_versions(self, versions: Mapping[int, str]) -> Release:
        """Return a release with other versions of some APIs, as `Versions` reads them; "none" removes one."""
        changed = {key: Versions.parse(text) for key, text in versions.items()}
        return self._replace(
            versions=_merged(self.versions, changed), advertised=_merged(self.advertised, changed)
        )


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
_SAME_IN_3_9_AND_4_3: Final = {10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 17: 1, 18: 4, 19: 7, 22: 5, 36: 2}
_V3_9: Final = _ranges({0: 11, 1: 17, 2: 9, 3: 12, 8: 9, 9: 9, **_SAME_IN_3_9_AND_4_3})
_V4_3: Final = _ranges(
    {0: 13, 1: 18, 2: 11, 3: 13, 8: 10, 9: 10, **_SAME_IN_3_9_AND_4_3},
    oldest={0: 3, 1: 4, 2: 1, 8: 2, 9: 1, 19: 2},
)
_CLAMPED: Final = frozenset({0, 1, 3})

RELEASES: Final = {
    release.name: release
    for release in (
        Release(
            "0.8.2-beta",
            _V0_8,
            {},
            0,
            _CLAMPED,
            ignores_trailing_bytes=True,
            beta_offset_commit=True,
            accepts_any_acks=True,
        ),
        Release(
            "0.8.2",
            _V0_8,
            {},
            0,
            _CLAMPED,
            ignores_trailing_bytes=True,
            zookeeper=True,
            accepts_any_acks=True,
        ),
        Release(
            "0.9", _V0_9, {}, 0, _CLAMPED, drops_unreadable=True, ignores_trailing_bytes=True, zookeeper=True
        ),
        Release("0.10", _V0_10, _V0_10, 1, ignores_trailing_bytes=True, zookeeper=True),
        Release("1.1", _V1_1, _V1_1, ignores_trailing_bytes=True, zookeeper=True),
        Release("3.9", _V3_9, _V3_9, lists_api_versions=True),
        # KAFKA-18659: Produce 0 to 2 are listed for librdkafka, and refused.
        Release("4.3", _V4_3, {**_V4_3, 0: Versions(0, 13)}, lists_api_versions=True),
    )
}
"""The releases by name; ``0.8.2-beta`` follows the 0.8 guide to the letter."""
