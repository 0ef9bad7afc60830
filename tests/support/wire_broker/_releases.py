"""The releases of Kafka that can be emulated: their API versions, and how they refuse others.

The ranges were listed, or answered, by real brokers; so were their oddities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.schema import Versions

_VERSIONS: Final = """
                    0.8.2 0.9   0.10  1.1   3.9   4.3
PRODUCE             0     0-1   0-2   0-5   0-11  3-13
FETCH               0     0-1   0-3   0-7   0-17  4-18
LIST_OFFSETS        0     0     0-1   0-2   0-9   1-11
METADATA            0     0     0-2   0-5   0-12  0-13
OFFSET_COMMIT       0-1   0-2   0-2   0-3   0-9   2-10
OFFSET_FETCH        0-1   0-1   0-2   0-3   0-9   1-10
FIND_COORDINATOR    0     0     0     0-1   0-6   0-6
JOIN_GROUP          none  0     0-1   0-2   0-9   0-9
HEARTBEAT           none  0     0     0-1   0-4   0-4
LEAVE_GROUP         none  0     0     0-1   0-5   0-5
SYNC_GROUP          none  0     0     0-1   0-5   0-5
DESCRIBE_GROUPS     none  0     0     0-1   0-5   0-6
LIST_GROUPS         none  0     0     0-1   0-5   0-5
SASL_HANDSHAKE      none  none  0     0-1   0-1   0-1
API_VERSIONS        none  none  0     0-1   0-4   0-4
CREATE_TOPICS       none  none  0-1   0-2   0-7   2-7
INIT_PRODUCER_ID    none  none  none  0     0-5   0-5
DESCRIBE_CONFIGS    none  none  none  0-1   0-4   1-4
SASL_AUTHENTICATE   none  none  none  0     0-2   0-2
CONSUMER_GROUP_HEARTBEAT none none none none 0    0-1
"""
"""The API versions that each release accepts."""


class Release(NamedTuple):
    """A release: the API versions that its broker accepts, by API key, and its behaviour.

    A request that the broker cannot read ends the connection, unless ``drops_unreadable``.

    Examples:
        >>> from wire_broker import RELEASES
        >>> RELEASES["0.10"].number, RELEASES["0.10"].magic
        ((0, 10), 1)
    """

    name: str
    versions: Mapping[int, Versions]
    magic: int = 2
    """The message format of the log; older formats are converted when they are appended."""
    clamped_apis: frozenset[int] = frozenset()
    """APIs whose requests of newer versions are read, and answered, in the newest that it has."""
    drops_unreadable: bool = False
    beta_offset_commit: bool = False
    """Whether OffsetCommit 0 has the layout of the 0.8 guide, with a timestamp."""
    zookeeper: bool = False
    """Whether version 0 of OffsetCommit and OffsetFetch uses a separate store."""
    lists_api_versions: bool = False
    """Whether error 35 to an ApiVersions request lists the versions of ApiVersions."""
    accepts_any_acks: bool = False
    """Whether acks above 1 wait for that many replicas; later brokers refuse them."""

    @property
    def number(self) -> tuple[int, int]:
        """The first two numbers of the release, to compare: (0, 8) to (4, 3)."""
        major, minor, *_ = self.name.split(".")
        return int(major), int(minor)

    @property
    def advertised(self) -> Mapping[int, Versions]:
        """The ranges that ApiVersions lists."""
        if self.name != "4.3":
            return self.versions
        # KAFKA-18659: Produce 0 to 2 are listed for librdkafka, and refused.
        return {**self.versions, ApiKey.PRODUCE: Versions(0, self.versions[ApiKey.PRODUCE].last)}


def _versions(release: str) -> dict[int, Versions]:
    heading, *rows = (line.split() for line in _VERSIONS.strip().splitlines())
    ranges = {ApiKey[name]: cells[heading.index(release)] for name, *cells in rows}
    return {key: Versions.parse(text) for key, text in ranges.items() if text != "none"}


_BETA: Final = Release(
    "0.8.2-beta",
    _versions("0.8.2"),
    magic=0,
    clamped_apis=frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA}),
    beta_offset_commit=True,
    accepts_any_acks=True,
)
_V0_8: Final = _BETA._replace(name="0.8.2", beta_offset_commit=False, zookeeper=True)
_V0_9: Final = _V0_8._replace(
    name="0.9", versions=_versions("0.9"), accepts_any_acks=False, drops_unreadable=True
)
RELEASES: Final = {
    release.name: release
    for release in (
        _BETA,
        _V0_8,
        _V0_9,
        Release("0.10", _versions("0.10"), magic=1, zookeeper=True),
        Release("1.1", _versions("1.1"), zookeeper=True),
        Release("3.9", _versions("3.9"), lists_api_versions=True),
        Release("4.3", _versions("4.3"), lists_api_versions=True),
    )
}
"""The releases by name; ``0.8.2-beta`` follows the 0.8 guide to the letter.

Examples:
    >>> from wire_broker import RELEASES
    >>> [name for name in RELEASES if name.startswith("0.")]
    ['0.8.2-beta', '0.8.2', '0.9', '0.10']
"""
