"""The client's settings: from a file, the environment and the command line, in that order.

Any setting of librdkafka is taken, under its own name, from

1. ``--config file.properties`` (or the file that ``CE_KAFKA_CONFIG`` names): lines of
   ``name=value``; ``#`` begins a comment line;
2. ``CE_KAFKA_`` and the name in capitals, dots as underscores:
   ``CE_KAFKA_BOOTSTRAP_SERVERS=…``;
3. ``-X name=value``, and ``-b`` for ``bootstrap.servers``.

What comes later wins. A secret need not stand in any of them: ``name@=path``, in a file
or with -X, and ``CE_KAFKA_SASL_PASSWORD_FILE=path`` take the value from a file, without
its last line end.

Shown are only values known to be harmless (`cloudevents_kafka.redaction`); `Settings.redact` takes
all others out of any text. What may be a secret is in no message: neither a line without ``=``
nor the name of a file with a secret, which may be the secret itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import is_utf8
from cloudevents_kafka.redaction import has_credentials, mask_name, mask_setting, mask_settings

PREFIX: Final = "CE_KAFKA_"
CONFIG_VARIABLE: Final = "CE_KAFKA_CONFIG"
# Settings of librdkafka whose own name ends so; elsewhere _FILE means "read it from there".
_NAMED_FILE: Final = (
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.jwt.template.file",
)
_WITH_UNDERSCORE: Final = {"log.level": "log_level"}


class Origin(msgspec.Struct, frozen=True):
    """Settings, and where they came from."""

    name: str
    settings: Mapping[str, str]

    def __repr__(self) -> str:
        """Return the name only, as a traceback may show it."""
        return f"Origin({self.name!r})"


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
        if has_credentials(found):
            raise BadUsage(
                "an address of a broker is host:port, without a user or a password (what stands before @): "
                "give these as sasl.username and sasl.password"
            )
        return found

    def with_defaults(self, name: str, settings: Mapping[str, str]) -> Settings:
        """Put settings before all others, so that any other wins."""
        return Settings((Origin(name, settings), *self.origins))

    def with_rules(self, name: str, settings: Mapping[str, str]) -> Settings:
        """Put settings behind all others: what a command cannot do without."""
        return Settings((*self.origins, Origin(name, settings)))

    def shown(self) -> str:
        """Return what counts, grouped by origin; what is not known to be harmless is masked."""
        effective_in: dict[str, int] = {}
        for number, origin in enumerate(self.origins):
            effective_in |= dict.fromkeys(origin.settings, number)
        parts: list[str] = []
        for number, origin in enumerate(self.origins):
            held = sorted(origin.settings.items())
            lines = [
                f"{mask_name(name)}={mask_setting(name, value)}"
                for name, value in held
                if effective_in[name] == number
            ]
            if lines:
                parts.append("\n".join([f"# {origin.name}", *lines]))
        return "\n".join(parts) + "\n" if parts else ""

    def redact(self, text: str) -> str:
        """Return a text, such as an error of the client's, with all masked that may be a secret."""
        return mask_settings(text, self.effective)

    def __repr__(self) -> str:
        """Return the origins only, as a traceback may show it."""
        return f"Settings({', '.join(origin.name for origin in self.origins)})"


def gather(
    config: str | None, environment: Mapping[str, str], options: Iterable[str], brokers: str | None
) -> Settings:
    """Gather the settings of all origins; raises `BadUsage`."""
    path = config or environment.get(CONFIG_VARIABLE)
    origins: list[Origin] = []
    if path:
        origins.append(Origin(path, _of_file(path)))
    origins.append(Origin("environment", _of_environment(environment)))
    given = _of_pairs((option, "-X") for option in options)
    if brokers is not None:
        given["bootstrap.servers"] = brokers
    origins.append(Origin("command line", given))
    return Settings(tuple(origins))


def _of_file(path: str) -> dict[str, str]:
    numbered = enumerate(_read_config(path).split("\n"), 1)
    lines = [(number, line.strip()) for number, line in numbered]
    held = [(number, line) for number, line in lines if line and not line.startswith(("#", "!"))]
    return _of_pairs((line, f"{path}, line {number}") for number, line in held)


def _of_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair, where in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        from_file = name.endswith("@")
        name = name.removesuffix("@").strip()
        if not equals or not name:
            # Not the text itself: it may be a secret whose name was forgotten.
            raise BadUsage(f"{where}: a setting is name=value, or name@=path to read the value from a file")
        _check_name(name, where)
        found[name] = _read_value(value, f"{where}: {mask_name(name)}") if from_file else value
    return found


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE or not value:
            continue
        name = variable[len(PREFIX) :].lower().replace("_", ".")
        from_file = name.endswith(".file") and name not in _NAMED_FILE
        name = name.removesuffix(".file") if from_file else _WITH_UNDERSCORE.get(name, name)
        _check_name(name, variable)
        found[name] = _read_value(value, variable) if from_file else _checked_text(value, variable)
    return found


def _check_name(name: str, where: str) -> None:
    if name.endswith("_cb") or name in ("logger", "on_delivery"):
        raise BadUsage(f"{where}: {mask_name(name)} is a function in Python; a command line cannot set it")


def _checked_text(value: str, where: str) -> str:
    if not is_utf8(value):  # which no client takes; one of them ends the process
        raise BadUsage(f"{where} is not UTF-8, as settings must be")
    return value


def _read_value(path: str, where: str) -> str:
    try:
        return _read(path).rstrip("\r\n")
    except _Unreadable as error:
        # Not the name itself: it may be the secret, given where its file's name should be.
        raise BadUsage(
            f"{where}: cannot read the file that it names: {error}; "
            "the name is not shown, as it may be the value itself, which goes without @ and _FILE"
        ) from None


def _read_config(path: str) -> str:
    try:
        return _read(path)
    except _Unreadable as error:
        raise BadUsage(f"--config: cannot read {path}: {error}") from None


class _Unreadable(Exception):
    """A file cannot be read; the text says why, without its name."""


def _read(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise _Unreadable(error.strerror) from None
    except UnicodeDecodeError:
        raise _Unreadable("it is not UTF-8") from None
    except (ValueError, RuntimeError):  # a zero byte; a user behind ~ that is unknown
        raise _Unreadable("no file has such a name") from None
