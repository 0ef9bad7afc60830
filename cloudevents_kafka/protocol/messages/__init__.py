"""The requests and responses, each declared once for all its versions; related APIs share a module.

`APIS` maps each API key to the API's request and response; `connection` also declares the headers of frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
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
        """The name of the API, such as "JoinGroup"."""
        return api_name(self.key)

    @property
    def versions(self) -> Versions:
        """The declared versions of the request."""
        return spec_of(self.request).versions


_MODULES: Final = (configs, connection, fetch, groups, offsets, produce, topics)


def _apis() -> Iterator[Api]:
    """Yield each pair of classes with names that end with ``Request`` and ``Response``."""
    for module in _MODULES:
        for name, request in vars(module).items():
            if name.endswith("Request"):
                yield Api(request, getattr(module, f"{name.removesuffix('Request')}Response"))


APIS: Final = {api.key: api for api in sorted(_apis(), key=attrgetter("key"))}
"""The supported APIs, by API key.

Examples:
    >>> from cloudevents_kafka.protocol.messages import APIS
    >>> sorted(api.name for api in APIS.values())[:3]
    ['ApiVersions', 'CreateTopics', 'DescribeConfigs']
"""
