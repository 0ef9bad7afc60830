"""The declarations agree with Apache's own definitions, field by field in every version.

The definitions stand as JSON in the jars of kafka-clients: 3.9.1 has the messages from
version 0 on, 4.4.0 is what brokers support today.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from cloudevents_kafka.protocol.api_keys import ApiKey, api_name
from cloudevents_kafka.protocol.layout import Array, Codec, Layout, LengthPrefixed, default_of, layout_of
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.schema import NO_UUID, ArrayOf, Field, Structure, Versions, spec_of
from tests.support.cases import each

from .apache import MESSAGES, NEWEST, OLDEST, definitions, versions_of

pytestmark = pytest.mark.oracle

EMPTY = {"string": "", "bytes": b"", "records": b"", "bool": False, "uuid": NO_UUID}
# These releases have no field that a version does not have, so "may be left out" is not compared:
# 3.9.1 has no topics by id but in Fetch, 4.4.0 no header without client id.
NEVER_LEFT_OUT = {
    OLDEST: {
        "ProduceRequest.TopicData.Name",
        "ProduceResponse.Responses.Name",
        "OffsetCommitRequest.Topics.Name",
        "OffsetCommitResponse.Topics.Name",
        "OffsetFetchRequest.Groups.Topics.Name",
        "OffsetFetchResponse.Groups.Topics.Name",
    },
    NEWEST: {"RequestHeader.ClientId"},
}


class Row(NamedTuple):
    """A field in one version, with its position or tag."""

    path: str
    type: str
    nullable: bool
    compact: bool
    tag: int
    default: Any
    ignorable: bool


def is_there(given: dict[str, Any], key: str, version: int) -> bool:
    return version in Versions.parse(given.get(key, "none"))


def theirs(release: str, message: type[Structure], version: int) -> list[Row]:
    """Return the fields of a message in Apache's definitions, those of a structure after it."""
    whole = definitions(release)[message.__name__]
    common = {one["name"]: one["fields"] for one in whole.get("commonStructs", [])}
    flexible = is_there(whole, "flexibleVersions", version)
    found: list[Row] = []

    def walk(fields: list[dict[str, Any]], path: str) -> None:
        tagged = {one["tag"]: one for one in fields if is_there(one, "taggedVersions", version)}
        plain = [one for one in fields if not is_there(one, "taggedVersions", version)]
        for one in plain + [tagged[tag] for tag in sorted(tagged)]:
            if not is_there(one, "versions", version):
                continue
            name, type_ = ".".join([path, camel(one["name"])]), one["type"]
            own = "flexibleVersions" not in one or is_there(one, "flexibleVersions", version)
            sized = type_.startswith("[]") or type_ in {"string", "bytes", "records"}
            found.append(
                Row(
                    name,
                    type_,
                    is_there(one, "nullableVersions", version),
                    sized and flexible and own,
                    one["tag"] if one.get("tag") in tagged else -1,
                    their_default(one),
                    one.get("ignorable", False) or name in NEVER_LEFT_OUT[release],
                )
            )
            inner = type_.removeprefix("[]")
            walk(one.get("fields") or common.get(inner, []), name)

    walk(whole["fields"], message.__name__)
    return found


def their_default(one: dict[str, Any]) -> Any:
    type_, given = one["type"], one.get("default", "")
    if given == "null":
        return None
    if type_.startswith("[]"):
        return []
    if given == "":
        return "a structure" if type_[0].isupper() else EMPTY.get(type_, 0)
    if type_ == "bool":
        return given in {True, "true"}
    return given if type_ == "string" else int(str(given), 0)


def ours(message: type[Structure], version: int) -> list[Row]:
    """Return the fields of the declaration, in the same form."""
    found: list[Row] = []

    def walk(layout: Layout, path: str) -> None:
        for tag, field in [*((-1, field) for field in layout.fields), *layout.tagged.items()]:
            name = f"{path}.{camel(field.name)}"
            codec = field.codec
            sized = isinstance(codec, LengthPrefixed | Array)
            assert not sized or codec.nullable == (version in field.declared.wire.nullable)
            found.append(
                Row(
                    name,
                    type_of(codec),
                    version in field.declared.wire.nullable,
                    sized and codec.compact,
                    tag,
                    our_default(field.declared),
                    field.declared.wire.ignorable,
                )
            )
            inner = codec.element if isinstance(codec, Array) else codec
            if isinstance(inner, Layout):
                walk(inner, name)

    walk(layout_of(message, version), message.__name__)
    return found


def our_default(field: Field) -> Any:
    if isinstance(field.type, type) and not isinstance(field.type, ArrayOf):
        return "a structure"
    return default_of(field)


def camel(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in name.split("_"))


def type_of(codec: Codec) -> str:
    if isinstance(codec, Array):
        return f"[]{type_of(codec.element)}"
    if isinstance(codec, LengthPrefixed):
        return codec.type.name
    return {"boolean": "bool"}.get(codec.name, codec.name)


@pytest.mark.parametrize("release", [OLDEST, NEWEST])
@each("message", MESSAGES)
def test_fields(message, release):
    """Names, order, types, nulls, tags, defaults and compact lengths are Apache's in each version."""
    there = versions_of(release, message)
    assert there.last >= there.first
    for version in range(there.first, there.last + 1):
        assert ours(message, version) == theirs(release, message, version), version


@each("message", MESSAGES)
def test_versions(message):
    """A message is declared from version 0, which 3.9.1 still has, to the newest of 4.4.0."""
    about = spec_of(message)
    assert about.versions.first == versions_of(OLDEST, message).first == 0
    assert about.versions.last == versions_of(NEWEST, message).last
    assert versions_of(OLDEST, message).last >= versions_of(NEWEST, message).first - 1


@pytest.mark.parametrize("release", [OLDEST, NEWEST])
@each("message", MESSAGES)
def test_specs(message, release):
    """API keys and flexible versions are Apache's."""
    about, whole = spec_of(message), definitions(release)[message.__name__]
    assert about.key == whole.get("apiKey", -1)
    assert about.flexible == Versions.parse(whole["flexibleVersions"])


def test_all_keys():
    """Each API is listed under its own key, and its two messages have the same versions."""
    for key, api in APIS.items():
        assert key == api.key == spec_of(api.response).key
        assert spec_of(api.request).versions == spec_of(api.response).versions


def test_names_of_apis():
    """All API keys have the names of the definitions, also those of removed APIs."""
    found = {
        one["apiKey"]: one["name"].removesuffix("Request")
        for one in definitions(NEWEST).values()
        if one.get("type") == "request"
    }
    assert {key: api_name(key) for key in ApiKey} == found
