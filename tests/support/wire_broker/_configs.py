"""The settings of topics: names, defaults, types and allowed values, in the releases that have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.error_codes import ErrorCode
from tests.support.wire_broker._errors import ApiError, CloseConnection

# Name, type, default, the allowed values or the least and greatest number, and the releases.
_TABLE: Final = """
cleanup.policy                          list    delete               compact|delete  all
compression.gzip.level                  int     -1                   -1..9           3.9 4.3
compression.lz4.level                   int     9                    1..17           3.9 4.3
compression.type                        string  producer             @codecs          all
compression.zstd.level                  int     3                    -131072..22     3.9 4.3
delete.retention.ms                     long    86400000             0..             all
file.delete.delay.ms                    long    60000                0..             all
flush.messages                          long    9223372036854775807  1..             all
flush.ms                                long    9223372036854775807  0..             all
follower.replication.throttled.replicas list    -                    -               all
index.interval.bytes                    int     4096                 0..             all
leader.replication.throttled.replicas   list    -                    -               all
local.retention.bytes                   long    -2                   -2..            3.9 4.3
local.retention.ms                      long    -2                   -2..            3.9 4.3
max.compaction.lag.ms                   long    9223372036854775807  1..             3.9 4.3
max.message.bytes                       int     1048588              0..             3.9 4.3
max.message.bytes                       int     1000012              0..             0.10 1.1
message.downconversion.enable           boolean true                 -               3.9
message.format.version                  string  3.0-IV1              -               3.9
message.format.version                  string  1.1-IV0              -               1.1
message.format.version                  string  0.10.2-IV0           -               0.10
message.timestamp.after.max.ms          long    9223372036854775807  0..             3.9
message.timestamp.after.max.ms          long    3600000              0..             4.3
message.timestamp.before.max.ms         long    9223372036854775807  0..             3.9 4.3
message.timestamp.difference.max.ms     long    9223372036854775807  0..             0.10 1.1 3.9
message.timestamp.type                  string  CreateTime           CreateTime|LogAppendTime 3.9 4.3
message.timestamp.type                  string  CreateTime           -               0.10 1.1
min.cleanable.dirty.ratio               double  0.5                  0..1            all
min.compaction.lag.ms                   long    0                    0..             all
min.insync.replicas                     int     1                    1..             all
preallocate                             boolean false                -               all
remote.log.copy.disable                 boolean false                -               3.9 4.3
remote.log.delete.on.disable            boolean false                -               3.9 4.3
remote.storage.enable                   boolean false                -               3.9 4.3
retention.bytes                         long    -1                   -               all
retention.ms                            long    604800000            -1..            3.9 4.3
retention.ms                            long    604800000            -               0.10 1.1
segment.bytes                           int     1073741824           14..            0.10 1.1 3.9
segment.bytes                           int     1073741824           1048576..       4.3
segment.index.bytes                     int     10485760             0..             0.10 1.1
segment.index.bytes                     int     10485760             4..             3.9 4.3
segment.jitter.ms                       long    0                    0..             all
segment.ms                              long    604800000            0..             0.10 1.1
segment.ms                              long    604800000            1..             3.9 4.3
unclean.leader.election.enable          boolean false                -               all
"""
_CODECS: Final = ["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]
_TYPES: Final = {"boolean": 1, "string": 2, "int": 3, "long": 5, "double": 6, "list": 7}
DEFAULT: Final = 5
_SET_FOR_CLUSTER: Final = 3
_SET_BY_4_3: Final = "min.insync.replicas"
_WIDTHS: Final = {"int": 31, "long": 63}


class Config(NamedTuple):
    """A setting: its type and default, and its allowed values."""

    name: str
    type: str
    default: str
    allowed: str
    default_source: int = DEFAULT
    """The number in DescribeConfigs of the place where the default is set."""

    @property
    def type_number(self) -> int:
        """The type's number in DescribeConfigs."""
        return _TYPES[self.type]

    def parsed(self, text: str, release: tuple[int, int]) -> str:
        """Return a value; raise `ApiError` if it is not allowed."""
        if not self._allows(text.strip()):
            code = ErrorCode.UNKNOWN_SERVER_ERROR if release < (3, 9) else ErrorCode.INVALID_CONFIG
            raise ApiError(code, error_message=f"Invalid value {text} for configuration {self.name}")
        return text

    def _allows(self, text: str) -> bool:
        match self.type:
            case "boolean":
                return text.lower() in {"true", "false"}
            case "string":
                allowed = _CODECS if self.allowed == "@codecs" else self.allowed.split("|")
                return self.allowed == "-" or text in allowed
            case "list":
                return self.allowed == "-" or {one.strip() for one in text.split(",")} <= set(
                    self.allowed.split("|")
                )
        return self._is_in_range(text)

    def _is_in_range(self, text: str) -> bool:
        try:
            value = float(text) if self.type == "double" else int(text)
        except ValueError:
            return False
        least, _, greatest = self.allowed.partition("..")
        width = _WIDTHS.get(self.type)
        return (
            (width is None or -(1 << width) <= value < 1 << width)
            and (least in {"", "-"} or value >= float(least))
            and (not greatest or value <= float(greatest))
        )


def configs_of(release: str) -> dict[str, Config]:
    """Return the settings that topics of a release have, by name."""
    rows = (line.split(maxsplit=4) for line in _TABLE.strip().splitlines())
    return {
        name: Config(
            name,
            type,
            "" if default == "-" else default,
            allowed,
            _SET_FOR_CLUSTER if (name, release) == (_SET_BY_4_3, "4.3") else DEFAULT,
        )
        for name, type, default, allowed, releases in rows
        if releases == "all" or release in releases.split()
    }


def checked(
    configs: Mapping[str, Config], given: Mapping[str, str | None], release: tuple[int, int]
) -> dict[str, str]:
    """Return the values of settings; raise `ApiError` for an unknown name or a value that is not allowed."""
    found = {}
    for name, value in given.items():
        if name not in configs:
            raise ApiError(ErrorCode.INVALID_CONFIG, error_message=f"Unknown topic config name: {name}")
        if value is None and release < (1, 0):
            raise CloseConnection(f"{name} is null")
        found[name] = configs[name].parsed("null" if value is None else value, release)
    return found
