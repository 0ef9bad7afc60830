"""Records as public reports have them: what lenient reading makes of each, and what it leaves out."""

from __future__ import annotations

from typing import Any, Final

from cloudevents_kafka import Record

_JSON: Final = ("content-type", b"application/cloudevents+json")
_CORE: Final = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
_CE: Final = tuple((f"ce_{name}", text.encode()) for name, text in _CORE.items())


def _binary(*headers: tuple[str, bytes | None], value: bytes | None = b'{"n":1}') -> Record:
    return Record(value=value, headers=[*_CE, *headers])


def _json(members: bytes = b"", *headers: tuple[str, bytes | None]) -> Record:
    value = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"%b,"data":{"n":1}}' % members
    return Record(value=value, headers=[*headers])


_Row = tuple[str, Record, dict[str, Any] | None, dict[str, str | bytes]]
"""The repository and number of a report, its record, the attributes other than REQUIRED ones or None for a
record that is refused, and the values that are left out by name."""

_TIMES: Final = (
    ("smallrye-reactive-messaging#2061", b"2023-01-25T19:07:06.370582GMT"),
    ("incubator-kie-examples#1495", b"2022-02-24T13:25:16+0000"),
    ("sdk-python#152", b"2022-01-05T10:00:00.123456"),
    ("myntra/cortex#32", b"2018-07-23 09:51:00"),
    ("debezium#996", b"1576245885912"),
    ("an offset and a Z", b"2018-04-05T17:31:00+00:00Z"),
    ("a time without seconds", b"2018-04-05T17:31Z"),
)

REPORTED: Final[tuple[_Row, ...]] = (
    *((name, _binary(("ce_time", text)), {}, {"time": text.decode()}) for name, text in _TIMES),
    *((name, _json(b',"time":"%b"' % text, _JSON), {}, {"time": text.decode()}) for name, text in _TIMES),
    ("debezium#996, a number", _json(b',"time":1576245885912', _JSON), {}, {"time": "1576245885912"}),
    ("falcosidekick#1050", _binary(("ce_event_source", b"syscall")), {"eventsource": "syscall"}, {}),
    ("falcosidekick#1050, JSON", _json(b',"event_source":"syscall"', _JSON), {"eventsource": "syscall"}, {}),
    ("spring-cloud-function#1211", _binary(("ce_time", b"1732791600.12")), {}, {"time": "1732791600.12"}),
    (
        "spring-cloud-function#832",
        _binary(("ce_time", b"10:00:00.1+01:00")),
        {},
        {"time": "10:00:00.1+01:00"},
    ),
    ("sdk-go#533", _binary(("ce_fc-code-checksum", b"8a1f")), {"fccodechecksum": "8a1f"}, {}),
    ("camel-kamelets#513", _binary(("ce_aws.s3.key", b"k")), {"awss3key": "k"}, {}),
    ("sdk-java#425", _json(b',"cloud_Event-Key":"v"', _JSON), {"cloudeventkey": "v"}, {}),
    (
        "lakekeeper#63",
        _binary(("ce_tabular-type", b"table"), ("ce_tabular-id", b"550e"), value=None),
        {"tabulartype": "table", "tabularid": "550e"},
        {},
    ),
    ("motornet#1716", _binary(("ce_TenantId", b"4")), {"tenantid": "4"}, {}),
    ("sdk-java#357", _json(b',"decimal":42.42', _JSON), {"decimal": "42.42"}, {}),
    ("sdk-go#816", _json(b',"partitionkey":1234567890123', _JSON), {"partitionkey": "1234567890123"}, {}),
    ("sdk-python#32", _json(b',"extensions":{}', _JSON), {"extensions": "{}"}, {}),
    (
        "eventing-kafka-broker#1979",
        _binary(("ce_key", b"\x00\x00\x01\xff")),
        {},
        {"ce_key": b"\x00\x00\x01\xff"},
    ),
    ("sdk-java#676", _json(b',"subject":""', _JSON), {}, {"subject": ""}),
    ("sdk-go#615", _json(b',"dataschema":"#"', _JSON), {"dataschema": "#"}, {}),
    ("a header called data", _binary(("ce_data", b"x")), {}, {"data": "x"}),
    ("sdk-go#1113", _json(), {}, {}),
    (
        "xregistry-cli#23",
        _json(b"", ("content-type", b"application/json"), _JSON),
        {},
        {"content-type": "application/json"},
    ),
    (
        "a media type in quotation marks",
        _json(b"", ("content-type", b'"application/cloudevents+json"')),
        {},
        {},
    ),
    ("a media type after a blank", _json(b"", ("content-type", b" application/cloudevents+json")), {}, {}),
    (
        "a mapper that writes JSON",
        Record(headers=[(name, b'"%b"' % text) for name, text in _CE if text], value=b"{}"),
        {},
        {},
    ),
    ("microservices-django-kafka", Record(headers=[*_CE[1:]], value=b"x"), None, {}),
    (
        "spec#702",
        Record(headers=[_JSON], value=b'{"specversion":"1.0","id":null,"source":"/s","type":"t"}'),
        None,
        {},
    ),
    (
        "a number as id",
        Record(headers=[_JSON], value=b'{"specversion":"1.0","id":17,"source":"/s","type":"t"}'),
        None,
        {},
    ),
    ("RockLib.Messaging#166", Record(headers=[("ce_specversion", b"1.0.2"), *_CE[1:]]), None, {}),
    ("kyma#16671", Record(headers=[*_CE[:2], ("ce_source", b""), _CE[3]]), None, {}),
    ("spec#861", _json(b',"data_base64":"AA=="', _JSON), None, {}),
)
