"""Settings of librdkafka as those of Kafka's Java client, which Spark has: one spelling for all commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cloudevents_kafka.redaction import mask_name, mask_setting

_LOGIN: Final = "org.apache.kafka.common.security.{}LoginModule"
_MODULES: Final = {
    "PLAIN": _LOGIN.format("plain.Plain"),
    "SCRAM-SHA-256": _LOGIN.format("scram.Scram"),
    "SCRAM-SHA-512": _LOGIN.format("scram.Scram"),
}
_SAME: Final = {
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "isolation.level": "isolation.level",
    "client.id": "client.id",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "ssl.key.password": "ssl.key.password",
}
# librdkafka's name: the Java client's, and whether it wants the text of the file rather than its name.
_FILES: Final = {
    "ssl.ca.location": ("ssl.truststore.location", False),
    "ssl.certificate.location": ("ssl.keystore.certificate.chain", True),
    "ssl.key.location": ("ssl.keystore.key", True),
}
_ELSEWHERE: Final = frozenset({"bootstrap.servers", "metadata.broker.list", "sasl.username", "sasl.password"})


def kafka_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Give the ``kafka.…`` options of Spark's source for librdkafka's settings.

    Raises ValueError for a setting that has no counterpart, and for a file that cannot be read.
    """
    options: dict[str, str] = {}
    for name, value in settings.items():
        if name in _SAME:
            options[f"kafka.{_SAME[name]}"] = value.upper() if name == "security.protocol" else value
        elif name in _FILES:
            java, as_text = _FILES[name]
            options[f"kafka.{java}"] = _read(name, value) if as_text else value
            options[f"kafka.{'.'.join(java.split('.')[:2])}.type"] = "PEM"
        elif name not in _ELSEWHERE:
            raise ValueError(
                f"{mask_name(name)} is a setting of librdkafka, which Spark does not use: "
                f"give the Java client's own as kafka.NAME=VALUE"
            )
    return {**options, **_login(settings)}


def _read(name: str, path: str) -> str:
    """Return the text of a file; an error does not repeat its name, which may be the key itself."""
    try:
        return Path(path).expanduser().read_text("utf-8")
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not PEM, which is text"
    except (ValueError, RuntimeError):
        reason = "no file has such a name"
    raise ValueError(f"{name}: cannot read the file that it names: {reason}")


def _login(settings: Mapping[str, str]) -> dict[str, str]:
    name, password = settings.get("sasl.username"), settings.get("sasl.password")
    if name is None or password is None:
        return {}
    mechanism = settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "PLAIN"
    if mechanism not in _MODULES:
        raise ValueError(
            f"sasl.mechanism is {mask_setting('sasl.mechanism', mechanism)}; "
            "for others than PLAIN and SCRAM give kafka.sasl.jaas.config"
        )
    login = f'{_MODULES[mechanism]} required username="{_quoted(name)}" password="{_quoted(password)}";'
    return {"kafka.sasl.jaas.config": login, "kafka.sasl.mechanism": mechanism}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
