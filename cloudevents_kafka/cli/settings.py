"""The client's settings: from a file, the environment and the command line, in that order.

Any setting of librdkafka is taken, under its own name, from

1. ``--config file.properties`` (or the file that ``CE_KAFKA_CONFIG`` names): lines of
   ``name=value``; ``#`` begins a comment line;
2. ``CE_KAFKA_`` and the name in capitals, dots as underscores:
   ``CE_KAFKA_BOOTSTRAP_SERVERS=…``;
3. ``-X name=value``, and ``-b`` for ``bootstrap.servers``.

What comes later wins. A secret need not stand in any of them: ``name@=path``, in a file
or with -X, and ``CE_KAFKA_SASL_PASSWORD_FILE=path`` take the value from a file, without
its last line end. Secrets are never printed: `Settings.redact` takes them out of any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.cli.failures import BadUsage
from cloudevents_kafka.cli.parameters import is_utf8

PREFIX: Final = "CE_KAFKA_"
CONFIG_VARIABLE: Final = "CE_KAFKA_CONFIG"
MASK: Final = "********"
_SECRET: Final = re.compile(
    r"password|passphrase|secret|token|credential|jaas|user\.info|\.pem$|private\.key|oauthbearer\.config"
)
_URL_SECRET: Final = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
# Settings of librdkafka whose own name ends so; elsewhere _FILE means "read it from there".
_NAMED_FILE: Final = (
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.jwt.template.file",
)
_NO_SECRETS: Final = (".location", ".url", ".ms", ".file")  # where a secret is, not what it is
_WITH_UNDERSCORE: Final = {"log.level": "log_level"}


class Origin(msgspec.Struct, frozen=True):
    """Settings, and where they came from."""

    name: str
    settings: Mapping[str, str]


class Settings(msgspec.Struct, frozen=True):
    """All settings by origin; later ones win."""

    origins: tuple[Origin, ...]

    @property
    def effective(self) -> dict[str, str]:
        """The settings that count, by name."""
        merged: dict[str, str] = {}
        for origin in self.origins:
            merged |= origin.settings
        return merged

    @property
    def brokers(self) -> str:
        """The addresses to begin with; raises `BadUsage` where there are none."""
        effective = self.effective
        found = effective.get("bootstrap.servers") or effective.get("metadata.broker.list")
        if not found:
            raise BadUsage(
                "no broker: give -b host:port, set CE_KAFKA_BOOTSTRAP_SERVERS, "
                "or put bootstrap.servers into a file for --config"
            )
        return found

    def with_defaults(self, name: str, settings: Mapping[str, str]) -> Settings:
        """Put settings before all others, so that any other wins."""
        return Settings((Origin(name, settings), *self.origins))

    def with_rules(self, name: str, settings: Mapping[str, str]) -> Settings:
        """Put settings behind all others: what a command cannot do without."""
        return Settings((*self.origins, Origin(name, settings)))

    def shown(self) -> str:
        """Show what counts, grouped by origin, secrets masked; readable by --config again."""
        effective_in: dict[str, int] = {}
        for number, origin in enumerate(self.origins):
            effective_in |= dict.fromkeys(origin.settings, number)
        parts: list[str] = []
        for number, origin in enumerate(self.origins):
            held = sorted(origin.settings.items())
            lines = [f"{name}={masked(name, value)}" for name, value in held if effective_in[name] == number]
            if lines:
                parts.append("\n".join([f"# {origin.name}", *lines]))
        return "\n".join(parts) + "\n" if parts else ""

    def redact(self, text: str) -> str:
        """Take every secret out of a text, such as an error of the client's."""
        for name, value in self.effective.items():
            if is_secret(name) and len(value) > 1:
                text = text.replace(value, MASK)
        return _URL_SECRET.sub(MASK, text)


def is_secret(name: str) -> bool:
    """Tell whether a setting's value may never be shown."""
    return _SECRET.search(name.lower()) is not None and not name.endswith(_NO_SECRETS)


def masked(name: str, value: str) -> str:
    """Show a setting's value, masked if it is a secret or a URL that holds one."""
    return MASK if is_secret(name) else _URL_SECRET.sub(MASK, value)


def gather(
    config: str | None, environment: Mapping[str, str], options: Iterable[str], brokers: str | None
) -> Settings:
    """Gather the settings of all origins; raises `BadUsage`."""
    path = config or environment.get(CONFIG_VARIABLE)
    origins: list[Origin] = []
    if path:
        origins.append(Origin(path, _of_file(path)))
    origins.append(Origin("environment", _of_environment(environment)))
    given = _of_pairs(options, "-X")
    if brokers is not None:
        given["bootstrap.servers"] = brokers
    origins.append(Origin("command line", given))
    return Settings(tuple(origins))


def _of_file(path: str) -> dict[str, str]:
    lines = (line.strip() for line in _read(path, "--config").splitlines())
    return _of_pairs((line for line in lines if line and not line.startswith(("#", "!"))), path)


def _of_pairs(pairs: Iterable[str], where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        from_file = name.endswith("@")
        name = name.removesuffix("@").strip()
        if not equals or not name:
            # Not the text itself: it may be a secret whose name was forgotten.
            raise BadUsage(f"{where}: a setting is name=value, or name@=path to read the value from a file")
        found[_checked(name, where)] = _read(value, name).rstrip("\r\n") if from_file else value
    return found


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE or not value:
            continue
        name = variable[len(PREFIX) :].lower().replace("_", ".")
        if name.endswith(".file") and name not in _NAMED_FILE:
            found[_checked(name.removesuffix(".file"), variable)] = _read(value, variable).rstrip("\r\n")
        else:
            found[_checked(_WITH_UNDERSCORE.get(name, name), variable)] = _checked_text(value, variable)
    return found


def _checked(name: str, where: str) -> str:
    if name.endswith("_cb") or name in ("logger", "on_delivery"):
        raise BadUsage(f"{where}: {name} is a function of Python's, which a command line cannot give")
    return name


def _checked_text(value: str, where: str) -> str:
    if not is_utf8(value):  # which no client takes; one of them ends the process
        raise BadUsage(f"{where} is not UTF-8, as settings must be")
    return value


def _read(path: str, where: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadUsage(f"{where}: cannot read {path}: {reason}") from None
