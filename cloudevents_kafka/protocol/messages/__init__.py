"""The requests and responses, each declared once for all its versions, in a module for each group of APIs.

`APIS` has the pairs by API key; `connection` has the headers, too.
"""

from __future__ import annotations

from itertools import starmap
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.messages import connection, fetch, groups, offsets, produce, topics
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of


class Api(NamedTuple):
    """An API: its key, name, versions, request and response."""

    key: int
    name: str
    versions: Versions
    request: type[Structure]
    response: type[Structure]


def _api(request: type[Structure], response: type[Structure]) -> Api:
    spec = spec_of(request)
    return Api(spec.key, spec.name, spec.versions, request, response)


_PAIRS: Final = (
    (produce.ProduceRequest, produce.ProduceResponse),
    (fetch.FetchRequest, fetch.FetchResponse),
    (offsets.ListOffsetsRequest, offsets.ListOffsetsResponse),
    (topics.MetadataRequest, topics.MetadataResponse),
    (offsets.OffsetCommitRequest, offsets.OffsetCommitResponse),
    (offsets.OffsetFetchRequest, offsets.OffsetFetchResponse),
    (groups.FindCoordinatorRequest, groups.FindCoordinatorResponse),
    (groups.JoinGroupRequest, groups.JoinGroupResponse),
    (groups.HeartbeatRequest, groups.HeartbeatResponse),
    (groups.LeaveGroupRequest, groups.LeaveGroupResponse),
    (groups.SyncGroupRequest, groups.SyncGroupResponse),
    (connection.SaslHandshakeRequest, connection.SaslHandshakeResponse),
    (connection.ApiVersionsRequest, connection.ApiVersionsResponse),
    (topics.CreateTopicsRequest, topics.CreateTopicsResponse),
    (produce.InitProducerIdRequest, produce.InitProducerIdResponse),
    (connection.SaslAuthenticateRequest, connection.SaslAuthenticateResponse),
)

APIS: Final = {api.key: api for api in starmap(_api, _PAIRS)}
"""The supported APIs by API key."""
