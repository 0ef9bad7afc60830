"""Translates settings of librdkafka to options of Spark's Kafka source, and back.

Spark's Kafka source uses the Java client. `to_java_settings` translates settings that a user has written for
librdkafka. `librdkafka_settings` returns the settings with which a librdkafka client in this process connects
in the same way as Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cloudevents_kafka.primitives.redaction import mask_name, mask_setting, mask_url

_LOGIN_MODULE: Final = "org.apache.kafka.common.security.{}LoginModule"
_OAUTH_HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_LOGIN_MODULES: Final = {
    "PLAIN": _LOGIN_MODULE.format("plain.Plain"),
    "SCRAM-SHA-256": _LOGIN_MODULE.format("scram.Scram"),
    "SCRAM-SHA-512": _LOGIN_MODULE.format("scram.Scram"),
}
_OAUTH_MODULE: Final = _LOGIN_MODULE.format("oauthbearer.OAuthBearer")
_HOST_NAMES: Final = "ssl.endpoint.identification.algorithm"
_SAME_VALUE: Final = {
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.sub.claim.name": "sasl.oauthbearer.sub.claim.name",
    "isolation.level": "isolation.level",
    "client.id": "client.id",
    _HOST_NAMES: _HOST_NAMES,
    "ssl.key.password": "ssl.key.password",
}
# The name in the Java client, and whether its value is the content of the file instead of the path.
_FILES: Final = {
    "ssl.ca.location": ("ssl.truststore.location", False),
    "ssl.certificate.location": ("ssl.keystore.certificate.chain", True),
    "ssl.key.location": ("ssl.keystore.key", True),
}
_OTHER_KEY: Final = re.compile("BEGIN (RSA|EC|DSA) PRIVATE KEY")
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
# For each name of librdkafka, the name of the option of Java's login.
_OAUTH_OPTIONS: Final = {
    "sasl.oauthbearer.client.id": "clientId",
    "sasl.oauthbearer.client.secret": "clientSecret",
    "sasl.oauthbearer.scope": "scope",
    "https.ca.location": "ssl.truststore.location",
}
_ALIASES: Final = {
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_OAUTH: Final = frozenset(
    {_ENDPOINT, "sasl.oauthbearer.method", "sasl.oauthbearer.extensions", *_OAUTH_OPTIONS, *_ALIASES}
)
_REQUIRED: Final = (_ENDPOINT, "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret")
_TRANSLATED_ELSEWHERE: Final = _OAUTH | {
    *("bootstrap.servers", "metadata.broker.list", "sasl.username", "sasl.password")
}
# A property of Kafka's clients from 3.9.1 on; clients from 4.0 on use only the endpoints in this list.
_ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_PREFIX: Final = "kafka."
_CONNECTION: Final = ("sasl.", "ssl.", "security.")  # settings that decide whether a broker answers
_SAME_IN_BOTH: Final = frozenset({*_SAME_VALUE.values(), _ENDPOINT}) - {"isolation.level", "client.id"}
_PEM: Final = {"ssl.keystore.certificate.chain": "ssl.certificate.pem", "ssl.keystore.key": "ssl.key.pem"}
_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
_JAAS: Final = tuple(f"{module} " for module in (*_LOGIN_MODULES.values(), _OAUTH_MODULE))
_JAAS_OPTION: Final = re.compile(r'([\w.]+)="((?:[^"\\]|\\.)*)"')
_LOGIN_NAMES: Final = {
    "username": "sasl.username",
    "password": "sasl.password",
    **{java: name for name, java in _OAUTH_OPTIONS.items()},
}
_EXTENSION: Final = "extension_"


def to_java_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the ``kafka.…`` options of Spark's source for settings of librdkafka.

    The logins PLAIN, SCRAM, and OAUTHBEARER with client credentials (``sasl.oauthbearer.method=oidc``) are
    supported. If you get your tokens from a command, pass the settings of a `TokenEndpoint`.

    Raises `ValueError` for a setting that cannot be translated, for a file that cannot be read, and for a key
    that is not in PKCS#8.

    Examples:
        >>> from cloudevents_kafka.spark.pipeline import to_java_settings
        >>> to_java_settings({"ssl.ca.location": "/etc/kafka/ca.pem"})
        {'kafka.ssl.truststore.location': '/etc/kafka/ca.pem', 'kafka.ssl.truststore.type': 'PEM'}
    """
    options: dict[str, str] = {}
    for name, value in settings.items():
        if name == _HOST_NAMES and value.lower() == "none":
            options[f"kafka.{name}"] = ""  # Java's word for "none"
        elif name in _SAME_VALUE:
            options[f"kafka.{_SAME_VALUE[name]}"] = value.upper() if name == "security.protocol" else value
        elif name in _FILES:
            java_name, is_content = _FILES[name]
            text = _read(name, value) if is_content else value
            if name == "ssl.key.location" and (other := _OTHER_KEY.search(text)):
                raise ValueError(
                    f"{name} must name a key in PKCS#8, which Spark's Java client reads, got {other[0]}; "
                    "convert it: openssl pkcs8 -topk8 -nocrypt -in KEY -out NEW"
                )
            options[f"kafka.{java_name}"] = text
            options[f"kafka.{'.'.join(java_name.split('.')[:2])}.type"] = "PEM"
        elif name not in _TRANSLATED_ELSEWHERE:
            raise ValueError(
                f"{mask_name(name)} is a setting of librdkafka, which Spark does not use: "
                "set the setting of the Java client as kafka.NAME=VALUE"
            )
    return {**options, **_login(settings)}


def _read(name: str, path: str) -> str:
    """Return the content of a file.

    Error messages do not contain the path, because a user may have passed a key instead of the path of a key.
    """
    try:
        return Path(path).expanduser().read_text("utf-8")
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not PEM, which is text"
    except (ValueError, RuntimeError):
        reason = "it is not a valid file name"
    raise ValueError(f"{name}: cannot read the file that it names: {reason}")


def _login(settings: Mapping[str, str]) -> dict[str, str]:
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "PLAIN"
    if _OAUTH & settings.keys():
        return _oauth_login(mechanism, {_ALIASES.get(name, name): settings[name] for name in settings})
    name, password = settings.get("sasl.username"), settings.get("sasl.password")
    if name is None or password is None:
        return {}
    if mechanism not in _LOGIN_MODULES:
        raise ValueError(
            f"sasl.mechanism must be PLAIN or SCRAM, got {mask_setting('sasl.mechanism', mechanism)}; "
            "for other mechanisms set kafka.sasl.jaas.config"
        )
    login = _jaas(_LOGIN_MODULES[mechanism], {"username": name, "password": password})
    return {"kafka.sasl.jaas.config": login, "kafka.sasl.mechanism": mechanism}


def _oauth_login(mechanism: str, settings: Mapping[str, str]) -> dict[str, str]:
    if mechanism != "OAUTHBEARER" or settings.get("sasl.oauthbearer.method") != "oidc":
        raise ValueError(
            "settings of sasl.oauthbearer and https need sasl.mechanism=OAUTHBEARER and "
            "sasl.oauthbearer.method=oidc; for another login set kafka.sasl.jaas.config"
        )
    if missing := [name for name in _REQUIRED if not settings.get(name)]:
        raise ValueError(f"sasl.oauthbearer.method=oidc needs {', '.join(missing)}")
    options = {java: settings[name] for name, java in _OAUTH_OPTIONS.items() if name in settings}
    if "https.ca.location" in settings:
        options["ssl.truststore.type"] = "PEM"
    for name, value in _pairs(settings.get("sasl.oauthbearer.extensions", "")):
        options[f"extension_{name}"] = value
    return {
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": _jaas(_OAUTH_MODULE, options),
        "kafka.sasl.login.callback.handler.class": _OAUTH_HANDLER,
        f"kafka.{_ENDPOINT}": settings[_ENDPOINT],
    }


def _pairs(text: str) -> list[tuple[str, str]]:
    """Return the SASL extensions in a text such as ``name=value,name=value``."""
    pairs = [tuple(map(str.strip, pair.partition("=")[::2])) for pair in text.split(",") if pair.strip()]
    if not all(name.isascii() and name.isalpha() and value for name, value in pairs):
        raise ValueError("sasl.oauthbearer.extensions must be name=value,…, with letters as names")
    return [(name, value) for name, value in pairs]


def _jaas(module: str, options: Mapping[str, str]) -> str:
    return " ".join([module, "required", *(f'{name}="{_escape(options[name])}"' for name in options)]) + ";"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def allow_token_endpoint(conf: Mapping[str, str], kafka: Mapping[str, str]) -> dict[str, str]:
    """Return settings of a Spark session that allow newer Kafka clients to connect to the token endpoint.

    If ``conf`` contains a list of allowed URLs, this list is used unchanged. A URL that contains a secret is
    not put on a command line.
    """
    url = kafka.get(f"kafka.{_ENDPOINT}", "")
    if not url or mask_url(url) != url or any(_ALLOWED_URLS in conf.get(name, "") for name in _JAVA_OPTIONS):
        return dict(conf)
    option = f"-D{_ALLOWED_URLS}={url}"
    return {**conf, **{name: f"{conf.get(name, '')} {option}".strip() for name in _JAVA_OPTIONS}}


class NoCounterpart(Exception):
    """A setting of Spark's Kafka source for which librdkafka has no setting."""


def librdkafka_settings(source_options: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's settings for options of Spark's Kafka source.

    With these settings, librdkafka connects in the same way as Spark.

    Raises `NoCounterpart` if an option affects the connection, but librdkafka has no setting for this option.
    """
    java = {
        name.removeprefix(_PREFIX): value
        for name, value in source_options.items()
        if name.startswith(_PREFIX)
    }
    settings = {"bootstrap.servers": java["bootstrap.servers"]}
    for name, value in java.items():
        if name == "sasl.jaas.config" and value.startswith(_JAAS):
            settings |= _login_of(value)
        elif name == "sasl.login.callback.handler.class" and value == _OAUTH_HANDLER:
            settings["sasl.oauthbearer.method"] = "oidc"
        elif name == "ssl.truststore.location" and java.get("ssl.truststore.type") == "PEM":
            settings["ssl.ca.location"] = value
        elif name in _SAME_IN_BOTH:
            settings[name] = value or "none"
        elif name in _PEM:
            settings[_PEM[name]] = value
        elif name.startswith(_CONNECTION) and not (name in _TYPES and value == "PEM"):
            raise NoCounterpart(f"{_PREFIX}{name}")
    return settings


def _login_of(jaas: str) -> dict[str, str]:
    """Return librdkafka's settings for the options of a Java login module."""
    login = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _JAAS_OPTION.findall(jaas)}
    pairs = [
        f"{name.removeprefix(_EXTENSION)}={value}"
        for name, value in login.items()
        if name.startswith(_EXTENSION)
    ]
    extensions = {"sasl.oauthbearer.extensions": ",".join(pairs)} if pairs else {}
    return {_LOGIN_NAMES[name]: login[name] for name in login if name in _LOGIN_NAMES} | extensions
