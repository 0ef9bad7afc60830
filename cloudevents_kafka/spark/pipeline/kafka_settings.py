"""`kafka_options`: settings of librdkafka as those of Kafka's Java client, which Spark uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cloudevents_kafka.redaction import mask_name, mask_setting

_LOGIN_MODULE: Final = "org.apache.kafka.common.security.{}LoginModule"
_LOGIN_MODULES: Final = {
    "PLAIN": _LOGIN_MODULE.format("plain.Plain"),
    "SCRAM-SHA-256": _LOGIN_MODULE.format("scram.Scram"),
    "SCRAM-SHA-512": _LOGIN_MODULE.format("scram.Scram"),
}
_SAME_VALUE: Final = {
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "isolation.level": "isolation.level",
    "client.id": "client.id",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "ssl.key.password": "ssl.key.password",
}
# The Java client's name, and whether its value is the content of the file instead of the path.
_FILES: Final = {
    "ssl.ca.location": ("ssl.truststore.location", False),
    "ssl.certificate.location": ("ssl.keystore.certificate.chain", True),
    "ssl.key.location": ("ssl.keystore.key", True),
}
_TRANSLATED_ELSEWHERE: Final = frozenset(
    {"bootstrap.servers", "metadata.broker.list", "sasl.username", "sasl.password"}
)


def kafka_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the ``kafka.…`` options of Spark's source for settings of librdkafka.

    Raises `ValueError` for a setting without a counterpart, and for a file that cannot be read.
    """
    options: dict[str, str] = {}
    for name, value in settings.items():
        if name in _SAME_VALUE:
            options[f"kafka.{_SAME_VALUE[name]}"] = value.upper() if name == "security.protocol" else value
        elif name in _FILES:
            java_name, is_content = _FILES[name]
            options[f"kafka.{java_name}"] = _read(name, value) if is_content else value
            options[f"kafka.{'.'.join(java_name.split('.')[:2])}.type"] = "PEM"
        elif name not in _TRANSLATED_ELSEWHERE:
            raise ValueError(
                f"{mask_name(name)} is a setting of librdkafka, which Spark does not use: "
                "set the Java client's own as kafka.NAME=VALUE"
            )
    return {**options, **_login(settings)}


def _read(name: str, path: str) -> str:
    """Return the content of a file; an error omits the path, which may be the key itself by mistake."""
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
    name, password = settings.get("sasl.username"), settings.get("sasl.password")
    if name is None or password is None:
        return {}
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "PLAIN"
    if mechanism not in _LOGIN_MODULES:
        raise ValueError(
            f"sasl.mechanism must be PLAIN or SCRAM, got {mask_setting('sasl.mechanism', mechanism)}; "
            "for others set kafka.sasl.jaas.config"
        )
    login = f'{_LOGIN_MODULES[mechanism]} required username="{_escape(name)}" password="{_escape(password)}";'
    return {"kafka.sasl.jaas.config": login, "kafka.sasl.mechanism": mechanism}


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
