"""Odd frames, headers and requests of a connection."""

from __future__ import annotations

import struct

from cloudevents_kafka.protocol import frames
from cloudevents_kafka.protocol.api_keys import ApiKey
from cloudevents_kafka.protocol.messages import groups
from cloudevents_kafka.protocol.messages.connection import (
    ApiVersionsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

from .topic_cases import metadata

ABSENT = "odd/absent"


def bytes_after_a_request(ask):
    for more in (b"\0", b"\0\0\0", b"\xff" * 40):
        for versions in ("0", "1-8", "9-12", "13"):
            yield ask(metadata(ABSENT), versions, edit=lambda frame, more=more: frame + more)


def bytes_after_other_requests(ask):
    group = ask.group()
    beat = groups.HeartbeatRequest(group_id=group, generation_id=1, member_id="x")
    for versions in ("0-3", "4"):
        yield ask(beat, versions, edit=lambda frame: frame + b"\0\0\0")
    for versions in ("0", "1-2", "3-4"):
        yield ask(ApiVersionsRequest(**SOFTWARE), versions, edit=lambda frame: frame + b"\0\0\0")


def cut_requests(ask):
    for versions in ("0", "1-8", "9-12"):
        for kept in (-1, -3):
            yield ask(metadata(ABSENT), versions, edit=lambda frame, kept=kept: frame[:kept])


def client_ids(ask):
    for name in (None, "", "x" * 32767):
        for versions in ("0", "9-12"):
            yield ask(metadata(ABSENT), versions, client_id=name)


def client_id_that_is_no_text(ask):
    for versions in ("0", "9-12"):
        yield ask(metadata(ABSENT), versions, edit=lambda frame: frame.replace(b"odd", b"\xff\xfe\xfd", 1))


def topic_that_is_no_text(ask):
    for versions in ("0", "1-8", "9"):
        yield ask(metadata("xyz/w"), versions, edit=lambda frame: frame.replace(b"xyz", b"\xff\xfe\xfd", 1))


def tags_of_a_header(ask):
    for tags in (b"\x01\x05\x01x", b"\x01\x00\x00", b"\x02\x05\x00\x05\x00", b"\x02\x06\x00\x05\x00"):
        yield ask(
            metadata(ABSENT),
            "9-12",
            edit=lambda frame, tags=tags: frame.replace(b"odd\0", b"odd" + tags, 1),
        )


def tags_of_a_message(ask):
    for tags in (b"\x01\x05\x01x", b"\x01\x05\x02x", b"\xff\xff\xff\xff\x0f", b"\x02\x05\x00\x05\x00"):
        yield ask(metadata(ABSENT), "9-12", edit=lambda frame, tags=tags: frame[:-1] + tags)


def lengths_that_do_not_fit(ask):
    """The count of the topics, in front of the name, is another; a negative one asks about all topics."""
    for count in (-2, -2_147_483_648, 2, 2_147_483_647):
        changed = struct.pack(">i", count)
        found = ask(
            metadata(ABSENT), "1-3", edit=lambda frame, changed=changed: frame[:13] + changed + frame[17:]
        )
        yield found if isinstance(found, str) else {row["error_code"] for row in found["topics"]}


def unknown_apis(ask):
    for key in (-1, 200, 999):
        yield ask.frame(struct.pack(">hhih", key, 0, 1, -1), ApiKey.METADATA, 0)


def apis_between_brokers(ask):
    for key in (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
    ):
        if ask.release.name in {"3.9", "4.3"}:
            yield ask.frame(struct.pack(">hhih", key, 0, 1, -1), ApiKey.METADATA, 0)


def versions_that_no_broker_has(ask):
    for version in (-1, 99, 32767):
        if ask.release.name >= "3":
            yield ask.frame(struct.pack(">hhih", ApiKey.METADATA, version, 1, -1), ApiKey.METADATA, 0)
            yield ask.frame(struct.pack(">hhih", ApiKey.HEARTBEAT, version, 1, -1), ApiKey.HEARTBEAT, 0)


def versions_that_are_gone(ask):
    """4.3 lists Produce 0, and refuses it."""
    for key, versions in ask.release.versions.items():
        for version in (versions.first - 1, versions.last + 1):
            if ask.release.name >= "3" and version >= 0 and key != ApiKey.API_VERSIONS:
                yield ask.frame(struct.pack(">hhih", key, version, 1, -1) + b"\0" * 40, key, 0)


def short_frames(ask):
    for size in range(10):
        yield ask.raw(frames.add_size(struct.pack(">hhih", ApiKey.METADATA, 0, 1, -1)[:size]), 3, 0)


def sizes_of_frames(ask):
    for size in (-1, -2_147_483_648, 2_147_483_647, 104_857_601):
        yield ask.raw(struct.pack(">i", size), 3, 0)


def other_protocols(ask):
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
        yield ask.raw(data, 3, 0)


SOFTWARE = {"client_software_name": "odd", "client_software_version": "1"}


def names_of_software(ask):
    for name, version in (
        ("odd", "1"),
        ("", "1"),
        ("odd", ""),
        ("odd name", "1"),
        ("odd", "1 2"),
        ("-odd", "1"),
        ("odd-", "1"),
        ("o", "."),
        ("odd.name-2", "1.0-rc"),
        ("ödd", "1"),
        ("odd_name", "1"),
        ("x" * 300, "1"),
    ):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        yield ask(request, "3-4")


def versions_of_api_versions(ask):
    for version in (3, 5, 99, 32767):
        if ApiKey.API_VERSIONS in ask.release.versions and version > ask.release.versions[18].last:
            yield ask.frame(struct.pack(">hhih", 18, version, 1, -1), 18, 0)
            yield ask.frame(struct.pack(">hhih", 18, version, 1, -1) + b"\0\2x\2x\0", 18, 0)


def login_without_need(ask):
    yield ask(SaslHandshakeRequest(mechanism="PLAIN"), "0-1")
    yield ask(SaslHandshakeRequest(mechanism=""), "0-1")
    yield ask(SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), "0-2")
