"""The DescribeConfigs API: all settings of topics, and those of brokers that `Settings` has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cloudevents_kafka.protocol.error_codes import ErrorCode
from cloudevents_kafka.protocol.messages import configs as messages
from tests.support.wire_broker._call import Call
from tests.support.wire_broker._cluster import Topic
from tests.support.wire_broker._configs import DEFAULT, Config
from tests.support.wire_broker._errors import ApiError, error_in

_TOPIC: Final = 2
_BROKER: Final = 4
_SET_FOR_TOPIC: Final = 1
_SET_AT_START: Final = 4


def describe_configs(
    call: Call, request: messages.DescribeConfigsRequest
) -> messages.DescribeConfigsResponse:
    """Return settings, without synonyms and documentation."""
    resources = request.resources
    if call.release.number < (3, 9):  # the last one of a resource counts
        resources = list({(one.resource_type, one.resource_name): one for one in resources}.values())
    return messages.DescribeConfigsResponse(results=[_result(call, one) for one in resources])


def _result(call: Call, resource: messages.DescribeConfigsResource) -> messages.DescribeConfigsResult:
    type, name = resource.resource_type, resource.resource_name
    row = messages.DescribeConfigsResult(
        error_code=ErrorCode.NONE, error_message=None, resource_type=type, resource_name=name, configs=[]
    )
    with error_in(row):
        call.check(name if type == _TOPIC else None)
        wanted = resource.configuration_keys
        is_all = wanted is None or (not wanted and call.release.number >= (3, 9))
        row.configs = [one for one in _configs(call, type, name) if is_all or one.name in (wanted or [])]
    return row


def _configs(call: Call, type: int, name: str) -> Iterator[messages.DescribeConfigsResourceResult]:
    if type == _TOPIC:
        return topic_configs(call, call.cluster.described_topic(name))
    if type == _BROKER:
        return _of_broker(call, name)
    raise ApiError(ErrorCode.INVALID_REQUEST, error_message=f"Unsupported resource type: {type}")


def topic_configs(call: Call, topic: Topic) -> Iterator[messages.DescribeConfigsResourceResult]:
    """Yield the settings of a topic."""
    for config in call.cluster.configs.values():
        value = topic.setting(config.name)
        source = _SET_FOR_TOPIC if config.name in topic.own_settings else config.default_source
        yield _row(call, config, value, source)


def _of_broker(call: Call, name: str) -> Iterator[messages.DescribeConfigsResourceResult]:
    if name not in {"", str(call.node.id)}:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            error_message=f"Unexpected broker id, expected {call.node.id}, but received {name}",
        )
    for setting, value in call.cluster.broker_settings(call.node.id).items():
        config = Config(setting, "boolean" if isinstance(value, bool) else "long", "", "")
        yield _row(call, config, str(value).lower(), _SET_AT_START, read_only=True)


def _row(
    call: Call, config: Config, value: str, source: int, *, read_only: bool = False
) -> messages.DescribeConfigsResourceResult:
    return messages.DescribeConfigsResourceResult(
        name=config.name,
        value=value,
        read_only=read_only,
        is_default=call.version == 0 and source == DEFAULT,
        config_source=source,
        is_sensitive=False,
        config_type=config.type_number,
        documentation=None,
    )
