"""Settings of the Kafka client, from a file, the environment and the command line.

Any librdkafka setting is accepted under its own name. Later sources override earlier ones:

1. ``--profile name`` (or ``CE_KAFKA_PROFILE``): a table of the file ``profiles.toml`` in the folder of
   configurations, or of the file that ``CE_KAFKA_PROFILES`` names. A secret is a reference:
   ``sasl.password = { file = "…" }`` or ``{ env = "…" }``;
2. ``--config file.properties`` (or the file that ``CE_KAFKA_CONFIG`` names): lines of
   ``name=value``; a line that starts with ``#`` or ``!`` is a comment;
3. the environment: ``CE_KAFKA_`` and the name in capitals, with underscores for dots, such as
   ``CE_KAFKA_BOOTSTRAP_SERVERS``;
4. ``-X name=value``, and ``-b`` for ``bootstrap.servers``.

In addition ``sasl.oauthbearer.token.command`` is a command that prints a token (see `logins`).

The value of a secret can be read from a file: ``name@=path``, in a file or with -X, and
``CE_KAFKA_SASL_PASSWORD_FILE=path``. A line end at the end of that file is removed.

Output and errors contain only values that `redaction` lists as harmless, and no text that may be a
secret by mistake: a setting without ``=``, or the name of a file with a secret.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import FILE, SecondsType, is_utf8, option_group
from cloudevents_kafka.cli.terminal.text import near
from cloudevents_kafka.primitives.redaction import (
    MASK,
    is_secret_name,
    mask_name,
    mask_setting,
    mask_settings,
    mask_url,
)

_PREFIX: Final = "CE_KAFKA_"
_CONFIG_VARIABLE: Final = "CE_KAFKA_CONFIG"
_PROFILE_VARIABLE: Final = "CE_KAFKA_PROFILE"
_PROFILES_VARIABLE: Final = "CE_KAFKA_PROFILES"
_OWN_VARIABLES: Final = (_CONFIG_VARIABLE, _PROFILE_VARIABLE, _PROFILES_VARIABLE)
# Settings whose own name ends in .file; in other variables, _FILE means "read the value from a file".
_FILE_SETTINGS: Final = (
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.jwt.template.file",
)
# Settings whose names resemble those of secrets, by a word such as auth; a profile may have their values.
_NO_SECRETS: Final = frozenset(
    {
        *(f"sasl.oauthbearer.{name}" for name in ("token.command", "extensions", "sub.claim.name")),
        *(f"sasl.oauthbearer.assertion.claim.{name}" for name in ("aud", "iss", "sub")),
        *("sasl.oauthbearer.metadata.authentication.query", "schema.registry.ssl.key.location"),
        *(f"schema.registry.{name}.auth.credentials.source" for name in ("basic", "bearer")),
        *(f"schema.registry.bearer.auth.{name}" for name in ("client.id", "scope", "issuer.endpoint.url")),
        *(f"schema.registry.bearer.auth.{name}" for name in ("logical.cluster", "identity.pool.id")),
    }
)
# What librdkafka accepts in front of an address; the port follows.
_PROTOCOLS: Final = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_NO_BROKER: Final = (
    "the broker is missing: pass -b host:port, set CE_KAFKA_BOOTSTRAP_SERVERS, "
    "or put bootstrap.servers into a file for --config"
)
_MISSING: Final = {
    "topic": "the topic is missing: pass -t TOPIC",
    "source": "source: is required, pass --source URI-REFERENCE",
    "type": "type: is required, pass --type TEXT",
    "group": "the group is missing: pass --group NAME",
    "out": "the folder is missing: pass --out DIR",
    "position": "the position is missing: pass --to POSITION",
}
_WITH_UNDERSCORE: Final = {"log.level": "log_level"}


class Settings(msgspec.Struct, frozen=True):
    """The settings of all sources, with the name of each source; later sources override earlier ones."""

    sources: tuple[tuple[str, Mapping[str, str]], ...]

    @property
    def effective(self) -> dict[str, str]:
        """The settings in force, by name."""
        merged: dict[str, str] = {}
        for _, settings in self.sources:
            merged |= settings
        return merged

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the first brokers. Raises `BadUsage` if they are missing or have credentials."""
        servers = self.named_servers
        if not servers:
            raise BadUsage(_NO_BROKER)
        if "@" in servers:
            raise BadUsage(
                "a broker address must be host:port, without a user or a password before @; "
                "set sasl.username and sasl.password instead"
            )
        for address in servers.split(","):
            scheme, separator, _ = address.strip().partition("://")
            if separator and scheme.lower() not in _PROTOCOLS:
                raise BadUsage(
                    "a broker address must be host:port, such as localhost:9092, got "
                    f"{mask_url(address.strip())}; a URL is the address of another server, such as a schema "
                    "registry or a REST proxy"
                )
        return servers

    @property
    def named_servers(self) -> str | None:
        """The addresses of the first brokers, unchecked; None if there are none."""
        return self.effective.get("bootstrap.servers") or self.effective.get("metadata.broker.list")

    def check(self, *, show: bool, broker: bool = True, **missing: object) -> None:
        """Raise one `BadUsage` for all options that are missing, and by default the broker.

        With ``show``, print the settings in force instead, and end the command.
        """
        if show:
            click.echo(self.to_text(), nl=False)
            raise click.exceptions.Exit
        texts = [_MISSING[name] for name, value in missing.items() if not value]
        if broker and not self.named_servers:
            texts.append(_NO_BROKER)
        if texts:
            raise BadUsage("; ".join(texts))

    def with_defaults(self, name: str, settings: Mapping[str, str]) -> Settings:
        """Return settings in which all present sources override the new one.

        The client's log is off, unless ``debug`` is set.
        """
        quiet = {} if "debug" in self.effective else {"log_level": "0"}
        return Settings(((name, {**quiet, **settings}), *self.sources))

    def with_overrides(self, name: str, settings: Mapping[str, str]) -> Settings:
        """Return settings in which the new source overrides all present ones."""
        return Settings((*self.sources, (name, settings)))

    def without(self, name: str) -> Settings:
        """Return settings without one of them."""
        kept = (
            (source, {key: settings[key] for key in settings if key != name})
            for source, settings in self.sources
        )
        return Settings(tuple(kept))

    def split(self, prefix: str) -> tuple[Settings, dict[str, str]]:
        """Return the settings whose names do not begin with a prefix, and the others, without it."""
        own = {name: value for name, value in self.effective.items() if name.startswith(prefix)}
        rest = self
        for name in own:
            rest = rest.without(name)
        return rest, {name.removeprefix(prefix): value for name, value in own.items()}

    def to_text(self) -> str:
        """Return the settings in force as lines, grouped by source, with possible secrets masked."""
        winner = {name: number for number, (_, settings) in enumerate(self.sources) for name in settings}
        text = ""
        for number, (source, settings) in enumerate(self.sources):
            used = [item for item in sorted(settings.items()) if winner[item[0]] == number]
            if used:
                lines = (f"{mask_name(name)}={mask_setting(name, value)}" for name, value in used)
                text += "\n".join([f"# {source}", *lines, ""])
        return text

    def redact(self, text: str) -> str:
        """Return a text, such as an error of the client, with possible secrets masked."""
        return mask_settings(text, self.effective)

    def __repr__(self) -> str:
        """Return the names of the sources only: tracebacks may show it."""
        return f"Settings({', '.join(name for name, _ in self.sources)})"


def load_settings(
    config: str | None,
    environment: Mapping[str, str],
    pairs: Iterable[str],
    brokers: str | None,
    profile: str | None = None,
) -> Settings:
    """Return the settings of all sources. Raises `BadUsage` if one is wrong."""
    path, profile = config or environment.get(_CONFIG_VARIABLE), profile or environment.get(_PROFILE_VARIABLE)
    sources = [(f"profile {profile}", _from_profile(profile, environment))] if profile else []
    sources += [(path, _from_file(path))] if path else []
    sources.append(("environment", _from_environment(environment)))
    from_options = _from_pairs((pair, "-X") for pair in pairs)
    if brokers is not None:
        from_options["bootstrap.servers"] = brokers
    return Settings((*sources, ("command line", from_options)))


def _from_profile(profile: str, environment: Mapping[str, str]) -> dict[str, str]:
    path = _profiles_file(environment)
    profiles = _profiles(path)
    table = profiles.get(profile)
    if not isinstance(table, dict):
        advice = near(profile, profiles) or f"; it has {', '.join(profiles) or 'none'}"
        raise BadUsage(f"{path} has no profile {profile!r}{advice}")
    return dict(_from_table("", table, f"{path}, profile {profile}", environment))


def _profiles_file(environment: Mapping[str, str]) -> str:
    own = Path(click.get_app_dir("cloudevents-kafka"), "profiles.toml")
    return environment.get(_PROFILES_VARIABLE) or str(own)


def _profiles(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_read(path, f"--profile: cannot read {path}: "))
    except tomllib.TOMLDecodeError as error:
        raise BadUsage(f"{path} must be TOML: {error}") from None


def _complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click's signature
    """Return the profiles whose names begin so; none if the file cannot be read."""
    with suppress(BadUsage):
        return [name for name in _profiles(_profiles_file(os.environ)) if name.startswith(incomplete)]
    return []


def _from_table(
    prefix: str, table: Mapping[str, Any], where: str, environment: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the settings of a table: TOML reads a dotted name as nested tables."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        what = f"{where}: {mask_name(name)}"
        _check_name(name, where)
        if isinstance(value, dict) and value.keys() == {"file"} and f"{name}.file" not in _FILE_SETTINGS:
            yield name, _read_value(str(value["file"]), what)
        elif isinstance(value, dict) and value.keys() == {"env"}:
            text = environment.get(str(value["env"]))
            if text is None or not is_utf8(text):
                reference = f"the variable that {mask_name(name)} names"
                raise BadUsage(f"{where}: the environment must have {reference}, with text in UTF-8")
            yield name, text
        elif isinstance(value, dict):
            yield from _from_table(f"{name}.", value, where, environment)
        elif not isinstance(value, str | int | float):
            raise BadUsage(f"{what} must be text, a number or a boolean")
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if name not in _NO_SECRETS and is_secret_name(name) and mask_setting(name, text) == MASK:
                raise BadUsage(f'{what} may be a secret: refer to it, {{ file = "…" }} or {{ env = "…" }}')
            yield name, text


def _from_file(path: str) -> dict[str, str]:
    lines = map(str.strip, _read(path, f"--config: cannot read {path}: ").split("\n"))
    used = [(number, line) for number, line in enumerate(lines, 1) if not line.startswith(("#", "!"))]
    return _from_pairs((line, f"{path}, line {number}") for number, line in used if line)


def _from_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for pair, where in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        from_file = name.endswith("@")
        name = name.removesuffix("@").strip()
        if not equals or not name:
            # The text itself is not quoted: it may be a secret without its name.
            raise BadUsage(f"{where}: a setting must be name=value, or name@=path to read it from a file")
        _check_name(name, where)
        settings[name] = _read_value(value, f"{where}: {mask_name(name)}") if from_file else value
    return settings


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(_PREFIX) or variable in _OWN_VARIABLES or not value:
            continue
        name = variable[len(_PREFIX) :].lower().replace("_", ".")
        from_file = name.endswith(".file") and name not in _FILE_SETTINGS
        name = name.removesuffix(".file") if from_file else _WITH_UNDERSCORE.get(name, name)
        _check_name(name, variable)
        if not is_utf8(value) and not from_file:  # librdkafka aborts the process for such a group.id
            raise BadUsage(f"{variable} is not UTF-8, as settings must be")
        settings[name] = _read_value(value, variable) if from_file else value
    return settings


def _check_name(name: str, where: str) -> None:
    if name.endswith("_cb") or name in ("logger", "on_delivery"):
        raise BadUsage(f"{where}: {mask_name(name)} is a Python function and cannot be set here")


def _read_value(path: str, where: str) -> str:
    advice = (
        "; the name is not shown, since it may be the secret; to set a value directly, leave out @ or _FILE"
    )
    return _read(path, f"{where}: cannot read the file that it names: ", advice).rstrip("\r\n")


def _read(path: str, failure: str, advice: str = "") -> str:
    """Return the text of a file; the reason of an error does not contain the name of the file."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")  # programs on Windows write a mark
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except (ValueError, RuntimeError):  # a NUL in the name; an unknown user after ~
        reason = "the name is not a file name"
    raise BadUsage(f"{failure}{reason}{advice}")


# --- options of commands ---------------------------------------------------------

timeout_option: Final = click.option(
    "--timeout",
    type=SecondsType(),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a broker that does not answer.",
)
setting_option: Final = click.option(
    "-X",
    "options",
    metavar="NAME=VALUE",
    multiple=True,
    help="Any librdkafka setting; NAME@=FILE reads the value from a file. Repeatable.",
)
config_option: Final = option_group(
    click.option(
        "--config", type=FILE, metavar="FILE", help="Read settings, lines of NAME=VALUE (or CE_KAFKA_CONFIG)."
    ),
    click.option(
        "--profile",
        metavar="NAME",
        help="Read settings of a profile (or CE_KAFKA_PROFILE).",
        shell_complete=_complete_profiles,
    ),
)
kafka_options: Final = option_group(
    click.option("-b", "--brokers", metavar="HOST:PORT,…", help="The brokers (bootstrap.servers)."),
    setting_option,
    config_option,
    click.option(
        "--show-config",
        is_flag=True,
        help="Print the settings in force and exit; values not known to be harmless are masked.",
    ),
    timeout_option,
)


def pop_settings(options: dict[str, Any]) -> Settings:
    """Remove the values of `kafka_options` from a command's options; return all settings."""
    brokers = options.pop("brokers")
    config, pairs, profile = (options.pop(name) for name in ("config", "options", "profile"))
    return load_settings(config, os.environ, pairs or (), brokers, profile)
