"""Options files, which are TOML files with the options of a command under their Python names.

The table ``settings`` contains the settings that ``-X`` sets on the command line. Any value that is not a
list or a table may be a reference (see `references`); a secret must be a reference. Names of files that are
read, such as a schema or the file of a reference, are relative to the folder of the options file. All other
values mean the same as on the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cloudevents_kafka.cli.kafka.references import (
    Reference,
    has_secret,
    may_be_secret,
    read_toml,
    settings_of_table,
)
from cloudevents_kafka.cli.terminal.errors import BadUsage
from cloudevents_kafka.cli.terminal.parameters import is_utf8
from cloudevents_kafka.cli.terminal.text import escape_toml, near
from cloudevents_kafka.primitives.options import Field
from cloudevents_kafka.primitives.preview import preview
from cloudevents_kafka.primitives.redaction import mask_name

SETTINGS: Final = "settings"
"""The name of the table that contains settings, in an options file and in its values."""

_WORDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}
_BOOLEANS: Final = {"true": True, "false": False}


def read_options(path: str, fields: Sequence[Field], removed: Mapping[str, str]) -> dict[str, Any]:
    """Return the options in a file, as a dictionary by field name; raise `BadUsage` for a wrong option.

    ``removed`` maps the name of an option of an earlier version to a text that says what to use instead.
    """
    known = {field.name: field for field in fields if not field.option.of_settings}
    found: dict[str, Any] = {}
    for name, value in read_toml(path, f"--options: cannot read {path}: ").items():
        if name == SETTINGS:
            found |= {name: settings} if (settings := _settings(value, path, known)) else {}
        elif name in known:
            found[name] = _in_folder(_read(known[name], value, path), known[name], Path(path).parent)
        elif name in removed:
            raise BadUsage(f"{path}: {removed[name]}")
        else:
            raise BadUsage(f"{path}: {preview(name)} is not an option{_advice(name, fields)}")
    return found


def _advice(name: str, fields: Sequence[Field]) -> str:
    if "." in name or name in {field.name for field in fields if field.option.of_settings}:
        return f"; write a setting of -X into the table [{SETTINGS}]"
    names = {field.flag.removeprefix("--").replace("-", "_"): field.name for field in fields}
    if own := names.get(name.replace("-", "_")):
        return f"; in a file, its name is {own!r}"
    return near(name, names.values()) or "; see --print-options for their names"


def _settings(table: object, path: str, known: Mapping[str, Field]) -> dict[str, str | Reference]:
    where = f"{path}, {SETTINGS}"
    if not isinstance(table, dict):
        raise BadUsage(f"{where} must be a table of names and values, got {preview(table)}")
    if misplaced := sorted(table.keys() & known.keys()):
        raise BadUsage(f"{where}: {misplaced[0]} is an option; write it before the first [table]")
    settings = dict(settings_of_table(table, where))
    folder = Path(path).parent
    return {
        name: _moved(value, folder) if isinstance(value, Reference) else value
        for name, value in settings.items()
    }


def _read(field: Field, value: Any, path: str) -> Any:
    reference = Reference.of(value) if field.form == "value" else None
    if reference is not None:
        return reference
    if not _fits(field, value):
        raise BadUsage(f"{path}: {field.name} must be {_words(field)}, got {preview(value)}")
    if any(map(has_secret, _texts(value))):
        raise BadUsage(
            f'{path}: {field.name} may have a secret: refer to it, {{ file = "…" }} or {{ env = "…" }}'
        )
    return value


def _fits(field: Field, value: object) -> bool:
    if field.form == "list":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if field.form == "table":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return type(value) in field.types or (float in field.types and type(value) is int)


def _words(field: Field) -> str:
    if field.form == "list":
        return "a list of texts"
    if field.form == "table":
        name, _, text = field.option.example.rpartition("=")
        return f'a table of texts, such as "{name}" = "{text}"'
    return " or ".join(_WORDS[type_] for type_ in field.types)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()


def _in_folder(value: Any, field: Field, folder: Path) -> Any:
    """Return a value in which each name of a file to read begins with the path of ``folder``."""
    if isinstance(value, Reference):
        return _moved(value, folder)
    if field.option.path != "reads":
        return value
    if isinstance(value, dict):
        return {name: _join(folder, text) for name, text in value.items()}
    return _join(folder, value)


def _moved(reference: Reference, folder: Path) -> Reference:
    return Reference("file", _join(folder, reference.name)) if reference.kind == "file" else reference


def _join(folder: Path, name: str) -> str:
    return name if name.startswith("~") else str(folder / name)


def resolve(
    values: Mapping[str, Any], fields: Iterable[Field], path: str, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of options, without the settings; replace references by the texts they name."""
    return {
        field.name: _resolved(field, values[field.name], path, environment)
        for field in fields
        if field.name in values
    }


def _resolved(field: Field, value: Any, path: str, environment: Mapping[str, str]) -> Any:
    if not isinstance(value, Reference):
        return value
    text = value.read(field.name, path, environment)
    if str in field.types:
        return text
    try:
        return _BOOLEANS[text] if bool in field.types else field.types[0](text)
    except (ValueError, KeyError):
        # The text is not quoted: it may be a secret.
        raise BadUsage(
            f"{path}: {field.name} must be {_words(field)}, but its reference contains other text"
        ) from None


def to_toml(values: Mapping[str, Any], fields: Iterable[Field]) -> str:
    """Return the text of an options file; raise `BadUsage` for values that may be secrets."""
    import tomlkit

    document = tomlkit.document()
    for field in fields:
        if field.name in values:
            value = values[field.name]
            _check_printable(field, value)
            document.add(field.name, _inline(value))
    settings = values.get(SETTINGS, {})
    if settings:
        table = tomlkit.table()
        for name, value in settings.items():
            _check_setting(name, value)
            table.add(name, _inline(value))
        document.add(SETTINGS, table)
    return escape_toml(tomlkit.dumps(document))


def _inline(value: Any) -> Any:
    """Return a value for TOML; a reference is written on one line."""
    if not isinstance(value, Reference):
        return value
    from tomlkit import inline_table

    table = inline_table()
    table.add(value.kind, value.name)
    return table


def _check_printable(field: Field, value: Any) -> None:
    if isinstance(value, Reference):
        return
    if not all(map(is_utf8, _texts(value))):
        raise BadUsage(f"{field.flag} must be UTF-8, like all text in an options file")
    if any(map(has_secret, _texts(value))):
        raise BadUsage(
            f"{field.flag} may have a secret, and is not printed: write {field.name} into the file as "
            f'{{ env = "…" }} or {{ file = "…" }}'
        )


def _check_setting(name: str, value: str | Reference) -> None:
    if isinstance(value, str) and may_be_secret(name, value):
        raise BadUsage(
            f"-X: {mask_name(name)} may be a secret, and is not printed: pass {mask_name(name)}@=FILE, or "
            f'write it into the table [{SETTINGS}] of the file as {{ env = "…" }}'
        )
