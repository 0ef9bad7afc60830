"""The requests and responses, each declared once for all its versions, in a module for each group of APIs.

`APIS` has the pairs by API key; `connection` has the headers, too.
"""

from __future__ import annotations

from itertools import starmap
from typing import Final, NamedTuple

from cloudevents_kafka.protocol.api_keys import api_name
from cloudevents_kafka.protocol.messages import configs, connection, fetch, groups, offsets, produce, topics
from cloudevents_kafka.protocol.schema import Structure, Versions, spec_of


class Api(NamedTuple):
    """The request and response of an API.

    Examples:
        >>> from cloudevents_kafka.protocol.messages import APIS
        >>> api = APIS[18]
        >>> api.name, api.request.__name__, api.versions.last >= 3
        ('ApiVersions', 'ApiVersionsRequest', True)
    """

    request: type[Structure]
    response: type[Structure]

    @property
    def key(self) -> int:
        """The API key."""
        return spec_of(self.request).key

    @property
    def name(self) -> str:
        """The name, such as "JoinGroup"."""
        return api_name(self.key)

    @property
    def versions(self) -> Versions:
        """The declared versions."""
        return spec_of(self.request).versions


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
    (groups.DescribeGroupsRequest, groups.DescribeGroupsResponse),
    (groups.ListGroupsRequest, groups.ListGroupsResponse),
    (connection.SaslHandshakeRequest, connection.SaslHandshakeResponse),
    (connection.ApiVersionsRequest, connection.ApiVersionsResponse),
    (topics.CreateTopicsRequest, topics.CreateTopicsResponse),
    (produce.InitProducerIdRequest, produce.InitProducerIdResponse),
    (configs.DescribeConfigsRequest, configs.DescribeConfigsResponse),
    (connection.SaslAuthenticateRequest, connection.SaslAuthenticateResponse),
)

APIS: Final = {api.key: api for api in starmap(Api, _PAIRS)}
"""The supported APIs by API key.

Examples:
    >>> from cloudevents_kafka.protocol.messages import APIS
    >>> sorted(api.name for api in APIS.values())[:3]
    ['ApiVersions', 'CreateTopics', 'DescribeConfigs']
"""
