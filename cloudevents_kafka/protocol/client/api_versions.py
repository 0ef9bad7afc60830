"""Which version of each request goes to which broker.

Brokers from 0.10 on say what they take (ApiVersions, KIP-35). Older ones do not, and
must not be asked by trying: they answer versions they do not know in an older
layout, or say nothing at all. To ApiVersions 0.8 closes the connection; 0.9 drops the
request and answers the one behind it. Then everything goes in the versions that both
share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.protocol.client.connection import Connection
from cloudevents_kafka.protocol.client.deadline import Deadline
from cloudevents_kafka.protocol.errors import (
    BrokerError,
    DeadlineExceeded,
    Malformed,
    Truncated,
    Unsupported,
)
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of

SPOKEN: Final[dict[int, Versions]] = {
    0: Versions(0, 12),  # from 13 on, topics go by id
    1: Versions(0, 12),  # the same
    2: Versions(0, 7),  # 8 asks for what lies in tiered storage
    3: Versions(0, 12),
    8: Versions(1, 9),  # 0 is kept in ZooKeeper, and has two layouts; 10 goes by topic id
    9: Versions(1, 7),  # 8 asks for several groups
    10: Versions(0, 3),  # 4 asks for several coordinators
    11: Versions(0, 9),
    12: Versions(0, 4),
    13: Versions(0, 2),  # 3 lets several members leave
    14: Versions(0, 5),
    17: Versions(0, 1),
    18: Versions(0, 3),
    19: Versions(0, 6),
    22: Versions(0, 4),
    36: Versions(0, 2),
}
"""The versions that this client makes use of, by API key: fewer than are declared."""

OLD: Final[dict[int, Versions]] = {
    key: Versions(version, version)
    for key, version in {0: 0, 1: 0, 2: 0, 3: 0, 8: 1, 9: 1, 10: 0, 11: 0, 12: 0, 13: 0, 14: 0}.items()
}
"""What brokers of 0.8.2 and 0.9 take in one and the same layout; groups are for 0.9."""

OLDEST: Final = {key: versions for key, versions in OLD.items() if key not in {11, 12, 13, 14}}
"""What brokers of 0.8.2 take: groups have no members yet."""


_SILENCE: Final = 0.5
"""Seconds without an answer after which a broker is asked something that all answer."""


def ask(connection: Connection, deadline: Deadline, *, logs_in: bool = False) -> Mapping[int, Versions]:
    """Ask a broker for its versions; `OLD`, and the connection closed, where it passes over the question.

    `Disconnected` where it hangs up, as 0.8 does. One that ``logs_in`` may ask nothing
    else before, and has no broker of 0.9 at its end: SCRAM and PLAIN came with 0.10.
    """
    asked = connection.send(ApiVersionsRequest(), 0, deadline)
    try:
        if not logs_in and _is_silent(connection, deadline):
            return OLD
        answer = connection.receive(asked, deadline)
    except DeadlineExceeded:
        connection.close()
        raise
    assert isinstance(answer, ApiVersionsResponse)
    if answer.error_code:
        connection.close()
        raise BrokerError(answer.error_code, f"{connection.address}: ApiVersions")
    return {api.api_key: Versions(api.min_version, api.max_version) for api in answer.api_keys}


def greet(connection: Connection, deadline: Deadline) -> None:
    """Ask what brokers of all versions answer; `Disconnected` where there is none."""
    # Without any topic it would be a question about all of them.
    nameless = MetadataRequest(topics=[MetadataRequestTopic(name="")])
    connection.request(nameless, 0, deadline)


def _is_silent(connection: Connection, deadline: Deadline) -> bool:
    """Tell whether a broker answers the request behind this one first, so that this has no answer."""
    if connection.readable(deadline.at_most(_SILENCE)):
        return False
    try:
        greet(connection, deadline)
    except (Malformed, Truncated):  # an answer out of turn
        return True
    return False


def choose_version(
    structure: type[Structure], offered: Mapping[int, Versions], *, most: int | None = None
) -> int:
    """Return the highest version that both sides speak, ``most`` at most; `Unsupported` if there is none.

    The highest, always: brokers of 4.x list Produce from 0 on, and close the
    connection on 0 to 2 (KAFKA-18659).
    """
    about = spec_of(structure)
    known = SPOKEN[about.key]
    common = known.common(offered.get(about.key, Versions(0, -1)))
    if most is not None:
        common = Versions(common.first, min(common.last, most))
    if common.first > common.last:
        theirs = offered.get(about.key)
        raise Unsupported(
            f"{APIS[about.key].name}: the broker takes {theirs or 'no version'}, this client "
            f"speaks {known}{'' if most is None else f', and here {most} at most'}"
        )
    return common.last
