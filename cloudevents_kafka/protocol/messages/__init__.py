"""The requests and responses, a module for each API or group of APIs.

Each message is declared once for all its versions. `APIS` has the pairs by API key; `headers` has the
headers of requests and responses.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cloudevents_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from cloudevents_kafka.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from cloudevents_kafka.protocol.messages.fetch import FetchRequest, FetchResponse
from cloudevents_kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from cloudevents_kafka.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from cloudevents_kafka.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from cloudevents_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from cloudevents_kafka.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from cloudevents_kafka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from cloudevents_kafka.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from cloudevents_kafka.protocol.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of


class Api(NamedTuple):
    """An API: its key, name, request and response."""

    key: int
    name: str
    request: type[Structure]
    response: type[Structure]

    @property
    def versions(self) -> Versions:
        """The versions of request and response."""
        return spec_of(self.request).versions


def _api(request: type[Structure], response: type[Structure]) -> Api:
    spec = spec_of(request)
    return Api(spec.key, spec.name, request, response)


APIS: Final = {
    api.key: api
    for api in (
        _api(ProduceRequest, ProduceResponse),
        _api(FetchRequest, FetchResponse),
        _api(ListOffsetsRequest, ListOffsetsResponse),
        _api(MetadataRequest, MetadataResponse),
        _api(OffsetCommitRequest, OffsetCommitResponse),
        _api(OffsetFetchRequest, OffsetFetchResponse),
        _api(FindCoordinatorRequest, FindCoordinatorResponse),
        _api(JoinGroupRequest, JoinGroupResponse),
        _api(HeartbeatRequest, HeartbeatResponse),
        _api(LeaveGroupRequest, LeaveGroupResponse),
        _api(SyncGroupRequest, SyncGroupResponse),
        _api(SaslHandshakeRequest, SaslHandshakeResponse),
        _api(ApiVersionsRequest, ApiVersionsResponse),
        _api(CreateTopicsRequest, CreateTopicsResponse),
        _api(InitProducerIdRequest, InitProducerIdResponse),
        _api(SaslAuthenticateRequest, SaslAuthenticateResponse),
    )
}
"""The supported APIs by API key."""
