"""Apache's own definitions of the messages: JSON in the jars of kafka-clients."""

from __future__ import annotations

import json
import re
import zipfile
from functools import cache
from typing import Any

from cloudevents_kafka.jvm import resolve
from cloudevents_kafka.protocol.messages import APIS
from cloudevents_kafka.protocol.messages.connection import RequestHeader, ResponseHeader
from cloudevents_kafka.protocol.schema import Structure, Versions

OLDEST, NEWEST = "3.9.1", "4.4.0"  # the last with the messages from version 0 on; what brokers support today
MESSAGES = [message for api in APIS.values() for message in (api.request, api.response)]
MESSAGES += [RequestHeader, ResponseHeader]


@cache
def definitions(release: str) -> dict[str, dict[str, Any]]:
    """Return the definitions of a release by name."""
    jars = resolve([f"org.apache.kafka:kafka-clients:{release}"])
    (jar,) = (path for path in jars if path.name.startswith("kafka-clients-"))
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"common/message/\w+\.json", name)]
        read = [json.loads(uncommented(archive.read(name).decode())) for name in names]
    return {one["name"]: one for one in read}


def uncommented(text: str) -> str:
    """Return the text without comments, which start with two slashes outside strings."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda found: found[1] or "", text)


def versions_of(release: str, message: type[Structure]) -> Versions:
    return Versions.parse(definitions(release)[message.__name__]["validVersions"])
