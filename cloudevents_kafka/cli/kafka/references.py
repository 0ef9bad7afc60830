"""Settings as users write them; a reference to a file or a variable may replace a secret.

In TOML (profiles and options files), a reference is ``{ file = "…" }`` or ``{ env = "…" }``, and a text that
may be a secret is refused. In properties files, and with the option ``-X``, a reference is ``name@=file``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import is_utf8
from cloudevents_kafka.primitives.redaction import (
    MASK,
    is_secret_name,
    mask_assignments,
    mask_credentials,
    mask_name,
    mask_setting,
)

FILE_SETTINGS: Final = (
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.jwt.template.file",
)
"""Settings whose names end with ``.file``. In TOML, the key ``file`` of these settings is not a reference."""
# Settings whose names look like names of secrets, because of a word such as auth. Files may contain them.
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
# URLs of Azure contain the name of a container where other URLs contain a login.
_CONTAINER: Final = re.compile(r"\b(?:abfs|wasb)s?://[a-z0-9$-]{1,63}@")


class Reference(msgspec.Struct, frozen=True):
    """The file or environment variable that contains a value, without the line ends at the end of a file."""

    kind: Literal["file", "env"]
    name: str

    @classmethod
    def of(cls, value: object) -> Reference | None:
        """Return the reference that a TOML table describes, or None for other values."""
        if isinstance(value, dict) and value.keys() in ({"file"}, {"env"}):
            return next(cls(kind, str(name)) for kind, name in value.items())
        return None

    def read(self, shown: str, where: str, environment: Mapping[str, str]) -> str:
        """Return the text in the file, or in the environment variable, to which this object refers.

        In place of the name of the file or variable, an error message contains the text ``shown``.
        """
        if self.kind == "file":
            return read_value(self.name, f"{where}: {shown}")
        text = environment.get(self.name)
        if text is None or not is_utf8(text):
            reference = f"the variable that {shown} names"
            raise BadUsage(f"{where}: the environment must have {reference}, with text in UTF-8")
        return text


Written = Mapping[str, str | Reference]
"""Settings by name, with references as the user writes them."""


def read_settings(settings: Written, where: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return settings in which each reference is replaced by the text of its file or variable."""
    return {
        name: value if isinstance(value, str) else value.read(mask_name(name), where, environment)
        for name, value in settings.items()
    }


def settings_of_table(
    table: Mapping[str, Any], where: str, prefix: str = ""
) -> Iterator[tuple[str, str | Reference]]:
    """Yield the settings in a TOML table and in its nested tables.

    In TOML, a dotted name is a nested table. Raises `BadUsage` for a wrong setting.
    """
    for key, value in table.items():
        name = f"{prefix}{key}"
        what = f"{where}: {mask_name(name)}"
        check_name(name, where)
        reference = Reference.of(value)
        if reference is not None and f"{name}.{reference.kind}" not in FILE_SETTINGS:
            yield name, reference
        elif isinstance(value, dict):
            yield from settings_of_table(value, where, f"{name}.")
        elif not isinstance(value, str | int | float):
            raise BadUsage(f"{what} must be text, a number or a boolean")
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if may_be_secret(name, text):
                raise BadUsage(f'{what} may be a secret: refer to it, {{ file = "…" }} or {{ env = "…" }}')
            yield name, text


def settings_of_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, str | Reference]:
    """Return settings from pairs: a text, ``name=value`` or ``name@=file``, and the source of the text."""
    settings: dict[str, str | Reference] = {}
    for pair, where in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        from_file = name.endswith("@")
        name = name.removesuffix("@").strip()
        if not equals or not name:
            # The text itself is not quoted: it may be a secret without a name.
            raise BadUsage(f"{where}: a setting must be name=value, or name@=path to read it from a file")
        check_name(name, where)
        settings[name] = Reference("file", value) if from_file else value
    return settings


def may_be_secret(name: str, text: str) -> bool:
    """Return whether a setting may be a secret, which must not be stored in a file that others can read."""
    if name in _NO_SECRETS:
        return False
    return has_secret(text) or (is_secret_name(name) and mask_setting(name, text) == MASK)


def has_secret(text: str) -> bool:
    """Return whether a text contains a login, a token or a key, such as a URL with a password."""
    text = _CONTAINER.sub("abfs://", text)
    return mask_credentials(mask_assignments(text)) != text


def check_name(name: str, where: str) -> None:
    """Raise `BadUsage` for a setting whose value must be a Python object, such as a callback."""
    if name.endswith("_cb") or name in ("logger", "on_delivery"):
        raise BadUsage(f"{where}: {mask_name(name)} is a Python function and cannot be set here")


def read_toml(path: str, failure: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises `BadUsage` if the file cannot be read, with a message that starts with the text ``failure``. Also
    raises `BadUsage` if the file is not TOML.
    """
    try:
        return tomllib.loads(read_file(path, failure))
    except tomllib.TOMLDecodeError as error:
        raise BadUsage(f"{path} must be TOML: {error}") from None
    except RecursionError:
        raise BadUsage(f"{path} must be TOML: its brackets are nested too deeply") from None


def read_value(path: str, where: str) -> str:
    """Return the content of a file, without the line ends at the end of the file."""
    advice = (
        "; the name is not shown, since it may be the secret; to set a value directly, leave out @ or _FILE"
    )
    return read_file(path, f"{where}: cannot read the file that it names: ", advice).rstrip("\r\n")


def read_file(path: str, failure: str, advice: str = "") -> str:
    """Return the text of a file; the message of an error does not contain the file's name."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")  # Windows writes a byte order mark
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except (ValueError, RuntimeError):  # a NUL in the name; an unknown user after ~
        reason = "the name is not a file name"
    raise BadUsage(f"{failure}{reason}{advice}")
