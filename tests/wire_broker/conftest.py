"""Requests of every API and version, filled with small values."""

from __future__ import annotations

import pytest

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.layout import default_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import BOOLEAN, STRING, ArrayOf, Fixed, Prefixed, Uuid, fields_of


def _filled(structure, version):
    """Return a structure with one element in each array and small numbers."""
    values = {}
    for field in fields_of(structure):
        if version not in field.wire.versions or version in field.wire.tagged:
            continue
        values[field.name] = _value(field.type, version, field)
    return structure(**{**{f.name: default_of(f) for f in fields_of(structure)}, **values})


def _value(type, version, field):
    match type:
        case ArrayOf():
            return [_value(type.element, version, field)]
        case Prefixed():
            return "t" if type == STRING else b"\0" * 70
        case Fixed():
            return True if type is BOOLEAN else 1
        case Uuid():
            return default_of(field)
    return _filled(type, version)


@pytest.fixture(scope="session")
def some_requests():
    """Return a function from API key and version to a request's frame, without its size."""

    def request(key, version):
        return frames.encode_request(_filled(APIS[key].request, version), version, client_id="t")[4:]

    return request
