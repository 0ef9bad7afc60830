"""Settings of the Kafka client, from a file, the environment and the command line.

Any librdkafka setting is accepted under its own name. Later sources override earlier ones:

1. ``--profile name`` (or ``CE_KAFKA_PROFILE``): the table ``name`` of the file ``profiles.toml`` in the
   user's configuration folder, or of the file that ``CE_KAFKA_PROFILES`` names. In the table, secrets are
   written as references (see `references`);
2. ``--config file.properties`` (or the file that ``CE_KAFKA_CONFIG`` names): each line of the file is
   ``name=value``. A line that starts with ``#`` or ``!`` is a comment;
3. the environment: variables whose names are ``CE_KAFKA_`` and the name of a setting in capitals, with
   underscores for dots, such as ``CE_KAFKA_BOOTSTRAP_SERVERS``;
4. for the command ``pipeline``, the options file that ``--options`` names;
5. the command line: ``-X name=value``, and ``-b`` for ``bootstrap.servers``.

In addition, the setting ``sasl.oauthbearer.token.command`` is a command that prints a token (see `logins`).

The value of a secret can be read from a file: write ``name@=path`` in a properties file or with -X, or set
``CE_KAFKA_SASL_PASSWORD_FILE=path``. Line ends at the end of the file are not part of the secret.

Output and errors contain only values that `redaction` lists as harmless. By mistake, a user may write a
secret as a setting without ``=``, or in place of a file name. Therefore, errors show neither a setting
without ``=`` nor the name of a file from which a value is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import click
import msgspec

from cloudevents_kafka.cli.kafka.references import (
    FILE_SETTINGS,
    check_name,
    read_file,
    read_settings,
    read_toml,
    read_value,
    settings_of_pairs,
    settings_of_table,
)
from cloudevents_kafka.cli.terminal.completion import complete_from
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.options import struct_options
from cloudevents_kafka.cli.terminal.parameters import SecondsType, is_utf8, option_group
from cloudevents_kafka.cli.terminal.text import near
from cloudevents_kafka.primitives.options import Option
from cloudevents_kafka.primitives.redaction import mask_name, mask_setting, mask_settings, mask_url

_PREFIX: Final = "CE_KAFKA_"
_CONFIG_VARIABLE: Final = "CE_KAFKA_CONFIG"
_PROFILE_VARIABLE: Final = "CE_KAFKA_PROFILE"
_PROFILES_VARIABLE: Final = "CE_KAFKA_PROFILES"
_OWN_VARIABLES: Final = (_CONFIG_VARIABLE, _PROFILE_VARIABLE, _PROFILES_VARIABLE)
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


class SettingFiles(msgspec.Struct, frozen=True):
    """The files that contain settings; the environment and the command line override them."""

    config: Annotated[
        str | None,
        Option("Read settings, lines of NAME=VALUE (or CE_KAFKA_CONFIG).", metavar="FILE", path="reads"),
    ] = None
    profile: Annotated[
        str | None, Option("Read settings of a profile (or CE_KAFKA_PROFILE).", metavar="NAME")
    ] = None


class Settings(msgspec.Struct, frozen=True):
    """The settings of all sources, with the name of each source; later sources override earlier ones."""

    sources: tuple[tuple[str, Mapping[str, str]], ...]

    @property
    def effective(self) -> dict[str, str]:
        """The settings in effect, as a dictionary by name."""
        merged: dict[str, str] = {}
        for _, settings in self.sources:
            merged |= settings
        return merged

    @property
    def bootstrap_servers(self) -> str:
        """The checked addresses of the bootstrap brokers.

        Raises `BadUsage` if the addresses are missing or wrong.
        """
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
        """The addresses of the bootstrap brokers without a check, or None if no addresses are set."""
        return self.effective.get("bootstrap.servers") or self.effective.get("metadata.broker.list")

    def check(self, *, show: bool, broker: bool = True, **missing: object) -> None:
        """Raise one `BadUsage` for all missing options.

        By default, a missing address of a broker is an error, too.

        With ``show``, print the settings in effect, and end the command. With ``show``, missing options are
        not an error.
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
        """Return settings with an additional source, which all other sources override.

        The Kafka client then writes no log, unless the setting ``debug`` is set.
        """
        quiet = {} if "debug" in self.effective else {"log_level": "0"}
        return Settings(((name, {**quiet, **settings}), *self.sources))

    def with_overrides(self, name: str, settings: Mapping[str, str]) -> Settings:
        """Return settings with an additional source, which overrides all other sources."""
        return Settings((*self.sources, (name, settings)))

    def without(self, name: str) -> Settings:
        """Return settings without the setting that has this name."""
        kept = (
            (source, {key: settings[key] for key in settings if key != name})
            for source, settings in self.sources
        )
        return Settings(tuple(kept))

    def split(self, prefix: str) -> tuple[Settings, dict[str, str]]:
        """Return settings without names that begin with ``prefix``, and a dictionary of removed settings.

        The names in the dictionary do not contain the prefix.
        """
        own = {name: value for name, value in self.effective.items() if name.startswith(prefix)}
        rest = self
        for name in own:
            rest = rest.without(name)
        return rest, {name.removeprefix(prefix): value for name, value in own.items()}

    def to_text(self) -> str:
        """Return the settings in effect as lines, grouped by source; possible secrets are masked."""
        winner = {name: number for number, (_, settings) in enumerate(self.sources) for name in settings}
        text = ""
        for number, (source, settings) in enumerate(self.sources):
            used = [item for item in sorted(settings.items()) if winner[item[0]] == number]
            if used:
                lines = (f"{mask_name(name)}={mask_setting(name, value)}" for name, value in used)
                text += "\n".join([f"# {source}", *lines, ""])
        return text

    def redact(self, text: str) -> str:
        """Return a text, such as an error of the client, in which possible secrets are masked."""
        return mask_settings(text, self.effective)

    def __repr__(self) -> str:
        """Return only the names of the sources, since tracebacks may show this text."""
        return f"Settings({', '.join(name for name, _ in self.sources)})"


def load_settings(
    config: str | None,
    environment: Mapping[str, str],
    pairs: Iterable[str],
    brokers: str | None,
    profile: str | None = None,
    *,
    file: tuple[str, Mapping[str, str]] | None = None,
) -> Settings:
    """Return the settings of all sources. Raises `BadUsage`.

    ``file`` contains the name of an options file and the settings in this file.
    """
    path, profile = config or environment.get(_CONFIG_VARIABLE), profile or environment.get(_PROFILE_VARIABLE)
    sources = [(f"profile {profile}", _from_profile(profile, environment))] if profile else []
    sources += [(path, _from_file(path))] if path else []
    sources.append(("environment", _from_environment(environment)))
    sources += [file] if file else []
    from_options = read_settings(settings_of_pairs((pair, "-X") for pair in pairs), "-X", environment)
    if brokers is not None:
        from_options["bootstrap.servers"] = brokers
    return Settings((*sources, ("command line", from_options)))


def _from_profile(profile: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    path = _profiles_file(environment)
    profiles = _profiles(path)
    table = profiles.get(profile)
    if not isinstance(table, dict):
        advice = near(profile, profiles) or f"; it has {', '.join(profiles) or 'none'}"
        raise BadUsage(f"{path} has no profile {profile!r}{advice}")
    where = f"{path}, profile {profile}"
    return read_settings(dict(settings_of_table(table, where)), where, environment)


def _profiles_file(environment: Mapping[str, str]) -> str:
    own = Path(click.get_app_dir("cloudevents-kafka"), "profiles.toml")
    return environment.get(_PROFILES_VARIABLE) or str(own)


def _profiles(path: str) -> dict[str, Any]:
    return read_toml(path, f"--profile: cannot read {path}: ")


def _profile_names() -> Iterable[str]:
    """Return the names of the profiles, or an empty list if the file of profiles cannot be read."""
    with suppress(BadUsage):
        return _profiles(_profiles_file(os.environ))
    return ()


def _from_file(path: str) -> Mapping[str, str]:
    lines = map(str.strip, read_file(path, f"--config: cannot read {path}: ").split("\n"))
    used = [(number, line) for number, line in enumerate(lines, 1) if not line.startswith(("#", "!"))]
    settings: dict[str, str] = {}
    for number, line in used:
        if line:
            where = f"{path}, line {number}"
            settings |= read_settings(settings_of_pairs([(line, where)]), where, {})
    return settings


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for variable, value in environment.items():
        if not variable.startswith(_PREFIX) or variable in _OWN_VARIABLES or not value:
            continue
        name = variable[len(_PREFIX) :].lower().replace("_", ".")
        from_file = name.endswith(".file") and name not in FILE_SETTINGS
        name = name.removesuffix(".file") if from_file else _WITH_UNDERSCORE.get(name, name)
        check_name(name, variable)
        if not is_utf8(value) and not from_file:  # librdkafka aborts the process for such a group.id
            raise BadUsage(f"{variable} must be UTF-8, like all settings")
        settings[name] = read_value(value, variable) if from_file else value
    return settings


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
    help="Any librdkafka setting. NAME@=FILE reads the value from a file. Repeatable.",
)
config_option: Final = struct_options(SettingFiles, complete={"profile": complete_from(_profile_names)})
kafka_options: Final = option_group(
    click.option(
        "-b", "--brokers", "bootstrap_servers", metavar="HOST:PORT,…", help="The brokers (bootstrap.servers)."
    ),
    setting_option,
    config_option,
    click.option(
        "--show-config",
        is_flag=True,
        help="Print the settings that are used, and exit. Values are masked unless they are known to be "
        "harmless.",
    ),
    timeout_option,
)


def pop_settings(options: dict[str, Any]) -> Settings:
    """Remove the options that `kafka_options` has added to a command; return the settings of all sources."""
    brokers = options.pop("bootstrap_servers")
    config, pairs, profile = (options.pop(name) for name in ("config", "options", "profile"))
    return load_settings(config, os.environ, pairs or (), brokers, profile)
