"""An error of the SDK's functions is one of both libraries, with the content of this library's."""

from __future__ import annotations

import copy
import pickle

import pytest
from cloudevents.core import exceptions as v2
from cloudevents.core.bindings.kafka import KafkaMessage
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1 import exceptions as v1

from cloudevents_kafka import CloudEventsKafkaError, errors, sdk
from cloudevents_kafka.sdk import _errors
from cloudevents_kafka.sdk import v1 as sdk1
from tests.support.cases import each

NAMED = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.placed"}
HEADERS = {f"ce_{name}": value.encode() for name, value in NAMED.items()}
JSON_EVENT = {"content-type": b"application/cloudevents+json"}
CASES = {
    errors.NotAnEvent: KafkaMessage({"ce_id": b"1"}, None, b"17"),
    errors.BrokenEvent: KafkaMessage({**HEADERS, "ce_id": b"", "ce_my_ext": b"x"}, None, b""),
    errors.BrokenData: KafkaMessage(
        JSON_EVENT, None, b'{"specversion":"1.0","id":"1","source":"/","type":"t","data":"\\ud800"}'
    ),
    errors.UnsupportedFormat: KafkaMessage({"content-type": b"application/cloudevents+xml"}, None, b"<e/>"),
    errors.UnsupportedBatch: KafkaMessage({"content-type": b"application/cloudevents-batch+json"}, None, b""),
}


def raised(call: object, *arguments: object) -> CloudEventsKafkaError:
    with pytest.raises(CloudEventsKafkaError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value


@each("kind", CASES)
def test_a_message_that_cannot_be_read(kind: type[CloudEventsKafkaError]) -> None:
    """The error has the classes of both versions, and the record and verdict of this library."""
    error = raised(sdk.from_kafka_event, CASES[kind])
    assert isinstance(error, kind)
    for other in (
        v2.CloudEventValidationError,
        v1.MissingRequiredFields,
        v1.DataUnmarshallerError,
        ValueError,
    ):
        assert isinstance(error, other)
    assert isinstance(error, errors.DecodeError)
    assert error.record.value == CASES[kind].value
    assert error.verdict == kind.verdict  # type: ignore[attr-defined]


@each(
    "member",
    ['"time":"x"', '"my_ext":"x"', '"subject":""', '"dataschema":"order"', '"big":9223372036854775807'],
)
@each("data", [r'"\ud800"', "1e400", r'{"\ud800":1}'])
def test_attributes_that_the_sdk_reads_are_not_the_reason(member: str, data: str) -> None:
    """If only the data cannot be read, the error is that of the data, in both versions."""
    text = f'{{"specversion":"1.0","id":"1","source":"/","type":"t",{member},"data":{data}}}'
    for headers in (JSON_EVENT, {}, {"content-type": b"application/json"}):
        message = KafkaMessage(headers, None, text.encode())
        for call in (sdk.from_kafka_event, sdk1.from_structured):
            error = raised(call, message)
            assert isinstance(error, errors.BrokenData), (headers, call, error)
    broken = KafkaMessage(JSON_EVENT, None, text.replace('"id":"1"', '"id":""').encode())
    error = raised(sdk.from_kafka_event, broken)
    assert isinstance(error, errors.BrokenEvent)
    assert [problem.attribute for problem in error.problems][:1] == ["id"]


def test_the_errors_by_attribute_are_the_sdks() -> None:
    """Version 2 lists errors by attribute; here each has the text of a problem."""
    error = raised(sdk.from_kafka_event, CASES[errors.BrokenEvent])
    assert isinstance(error, v2.CloudEventValidationError)
    assert [(name, *map(type, found)) for name, found in error.errors.items()] == [
        ("id", v2.InvalidAttributeValueError),
        ("my_ext", v2.CustomExtensionAttributeError),
    ]
    assert str(error.errors["id"][0]) == "id: must not be empty, got '' (R-02, core: id)"
    error = raised(sdk.from_kafka_event, KafkaMessage(JSON_EVENT, None, b'{"specversion":"1.0","id":"1"}'))
    assert isinstance(error, v2.CloudEventValidationError)
    assert [type(one) for found in error.errors.values() for one in found] == 2 * [
        v2.MissingRequiredAttributeError
    ]


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (CloudEvent({**NAMED, "source": "a b"}), errors.InvalidEvent),
        (CloudEvent({**NAMED, "datacontenttype": "application/cloudevents+json"}), errors.EncodeError),
    ],
)
def test_an_event_that_cannot_be_written(event: CloudEvent, kind: type[CloudEventsKafkaError]) -> None:
    """The error has classes of both versions."""
    error = raised(sdk.to_binary_event, event)
    assert isinstance(error, kind)
    assert isinstance(error, v2.BaseCloudEventException)
    assert isinstance(error, v1.DataMarshallerError)


@each("kind", CASES)
def test_errors_can_be_copied(kind: type[CloudEventsKafkaError]) -> None:
    """An error can be pickled and copied, as those of this library."""
    error = raised(sdk.from_kafka_event, CASES[kind])
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert {name: str(one) for name, one in again.errors.items()} == {
            name: str(one)
            for name, one in error.errors.items()  # type: ignore[attr-defined]
        }


def test_causes_are_kept() -> None:
    """The cause of an error is that of the library's error, and an error of both is raised as it is."""
    own = _errors.EncodeError("both")

    def fail(error: Exception) -> None:
        raise error from KeyError("cause")

    call = _errors.raises_sdk_errors(fail)
    error = raised(call, errors.EncodeError("one"))
    assert (type(error), str(error)) == (_errors.EncodeError, "one")
    assert isinstance(error.__cause__, KeyError)
    assert raised(call, own) is own
