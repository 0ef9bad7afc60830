"""`librdkafka_settings`: options of Spark's Kafka source, which are for Java, as settings of librdkafka."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cloudevents_kafka.spark.pipeline.session import OAUTH_HANDLER, OAUTH_OPTIONS

_PREFIX: Final = "kafka."
_CONNECTION: Final = ("sasl.", "ssl.", "security.")  # settings that decide whether a broker answers
_SAME: Final = frozenset(
    {
        *("security.protocol", "ssl.endpoint.identification.algorithm", "ssl.key.password"),
        *("sasl.mechanism", "sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.sub.claim.name"),
    }
)
_PEM: Final = {"ssl.keystore.certificate.chain": "ssl.certificate.pem", "ssl.keystore.key": "ssl.key.pem"}
_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
_JAAS: Final = re.compile(
    r"org\.apache\.kafka\.common\.security\."
    r"(?:plain\.Plain|scram\.Scram|oauthbearer\.OAuthBearer)LoginModule "
)
_LOGIN: Final = re.compile(r'([\w.]+)="((?:[^"\\]|\\.)*)"')
_LOGIN_OPTIONS: Final = {
    "username": "sasl.username",
    "password": "sasl.password",
    **{java: name for name, java in OAUTH_OPTIONS.items()},
}
_EXTENSION: Final = "extension_"


class NoCounterpart(Exception):
    """A setting of Spark's source that librdkafka does not have."""


def librdkafka_settings(source_options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of librdkafka that connect as the options of Spark's Kafka source do.

    Raises `NoCounterpart` for one that decides on the connection and that librdkafka does not have.
    """
    java = {
        name.removeprefix(_PREFIX): value
        for name, value in source_options.items()
        if name.startswith(_PREFIX)
    }
    settings = {"bootstrap.servers": java["bootstrap.servers"]}
    for name, value in java.items():
        if name == "sasl.jaas.config" and _JAAS.match(value):
            settings |= _login(value)
        elif name == "sasl.login.callback.handler.class" and value == OAUTH_HANDLER:
            settings["sasl.oauthbearer.method"] = "oidc"
        elif name == "ssl.truststore.location" and java.get("ssl.truststore.type") == "PEM":
            settings["ssl.ca.location"] = value
        elif name in _SAME:
            settings[name] = value or "none"
        elif name in _PEM:
            settings[_PEM[name]] = value
        elif name.startswith(_CONNECTION) and not (name in _TYPES and value == "PEM"):
            raise NoCounterpart(f"{_PREFIX}{name}")
    return settings


def _login(jaas: str) -> dict[str, str]:
    """Return the settings of librdkafka for the options of a login module."""
    login = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _LOGIN.findall(jaas)}
    pairs = [
        f"{name.removeprefix(_EXTENSION)}={value}"
        for name, value in login.items()
        if name.startswith(_EXTENSION)
    ]
    extensions = {"sasl.oauthbearer.extensions": ",".join(pairs)} if pairs else {}
    return {_LOGIN_OPTIONS[name]: login[name] for name in login if name in _LOGIN_OPTIONS} | extensions
