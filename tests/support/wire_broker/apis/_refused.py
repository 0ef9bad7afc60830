"""ConsumerGroupHeartbeat (68), which is listed, as by real brokers, and refused: there is no KIP-848 here.

A broker whose setting ``group.coordinator.rebalance.protocols`` is ``classic`` answers the same. A client
whose broker does not list the API would wait for a newer one.
"""

from __future__ import annotations

from cloudevents_kafka.protocol.error_codes import ErrorCode
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._new_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def consumer_group_heartbeat(
    call: Call, _request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Return the error that refuses the new protocol of groups."""
    call.check()
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="WireBroker has no groups of the new protocol: set group.protocol to classic",
    )
